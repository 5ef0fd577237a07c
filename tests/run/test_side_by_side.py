"""Several runs on one page: settings that differ, tables next to each other, hostile texts."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

from tests.backends.report.test_report import HOSTILE

from agentc.result_tables import ResultTable
from agentc.run.side_by_side import RunSide, side_by_side


def job(name: str, settings: dict[str, Any], **inputs: list[str]) -> dict[str, Any]:
    key = f"{name}-{settings}"
    return {
        "id": name, "stage": name, "kind": "sft", "key": key, "backend": "trl.sft", "version": 1,
        "environment": "torch", "identity": {"settings": settings}, "leases": [], "config": {},
        "inputs": inputs, "produces": "Checkpoint", "resources": {}, "placement": {},
    }  # fmt: skip


def plan(name: str, **settings: Any) -> dict[str, Any]:
    return {
        "name": name, "params": {}, "experiment": {}, "environments": {"torch": {"lock": "1"}},
        "jobs": [job(f"sft@seed={seed}", {"lr": 0.1, **settings}) for seed in range(2)],
    }  # fmt: skip


def interval(mean: float) -> dict[str, Any]:
    return {"mean": mean, "low": mean - 0.25, "high": mean + 0.25, "n": 51}


def table(*rows: tuple[str, float]) -> ResultTable:
    columns = (("evaluation", "text"), ("reward", "interval"), ("success", "interval"))
    cells = tuple((name, interval(mean), interval(mean)) for name, mean in rows)
    return ResultTable("evaluations:craft/test", "Evaluations on craft/test", "95 % intervals",
                       columns, cells)  # fmt: skip


def jobs_table() -> ResultTable:
    names = ("wall_s", "cpu_s", "gpu_hours", "tokens_in", "tokens_out")
    columns: Any = (("job", "text"), ("kind", "text"), *((name, "number") for name in names))
    rows = (("sft", "sft", 60.0, 30.0, 0.5, None, 900), ("server of sft", "server", 60.0, 9.0,
            None, None, None))  # fmt: skip
    return ResultTable("jobs", "Jobs", "", columns, rows)


def side(label: str, document: dict[str, Any], *tables: ResultTable) -> RunSide:
    found = {each.name: each for each in tables}
    return RunSide(label, document, found, {"scale": "full"}, f"../{label}/report.html")


def rows_of(page: str, section: str) -> list[list[str]]:
    """The cells of a section's table, as text."""
    [body] = re.findall(rf"<h2>{re.escape(section)}</h2>(.*?)</section>", page, re.S)
    rows = re.findall(r"<tr>(.*?)</tr>", body, re.S)
    return [
        [re.sub(r"<[^>]+>", "", cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)]
        for row in rows
    ]


def test_settings_and_numbers_stand_next_to_each_other() -> None:
    page = side_by_side([
        side("a", plan("a"), table(("sft", 0.5), ("eto", 0.75)), jobs_table()),
        side("b", plan("a", lr=0.2), table(("sft", 0.25)), jobs_table()),
        side("c", plan("a", packing=True), table(("eto", 0.125))),
    ])  # fmt: skip
    _, *settings = rows_of(page, "Settings that differ")
    assert settings == [
        ["lr", "sft@*", "0.1", "0.2", "0.1"],
        ["packing", "sft@*", "false (default)", "false (default)", "true"],
    ]
    _, heads, sft, eto = rows_of(page, "Evaluations on craft/test")
    assert heads == ["", "a", "b", "c"], "success is the reward again"
    assert sft == ["sft", "0.500 [0.250, 0.750] n=51", "0.250 [0.000, 0.500] n=51", "–"]
    assert eto == ["eto", "0.750 [0.500, 1.000] n=51", "–", "0.125 [-0.125, 0.375] n=51"]
    _, first, *_, last = rows_of(page, "Runs")
    assert first == ["a", "full", "1", "60 s", "39 s", "0.50", "", "900"], "servers are no jobs"
    assert last[2:] == [""] * 6
    assert 'href="../b/report.html"' in page


def test_hostile_names_stay_text() -> None:
    document = plan(HOSTILE, **{HOSTILE: HOSTILE})
    sides = [side(HOSTILE, document, table((HOSTILE, 0.5))), side("b", plan("b"), table())]
    page = side_by_side(sides)
    tags = []

    class Tags(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            tags.append((tag, [name for name, _ in attrs]))

    Tags().feed(page)
    assert not {tag for tag, _ in tags} & {"script", "img"}
    assert not any(name.startswith("on") for _, names in tags for name in names)
    assert "default-src 'none'" in page

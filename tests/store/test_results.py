"""`agentc.results`: what a notebook loads of a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentc.result_tables import TABLES_FILE
from agentc.results import ResultsError, open_run
from agentc.runtime.store.layout import StoreLayout
from agentc.store.paths import RunFolder

JOBS = {
    "explore": ("rollout", "Trajectories"),
    "policy": ("sft", "Checkpoint"),
    "later": ("sft", "Checkpoint"),
    "report": ("report", "Report"),
}
EPISODES = [{"id": "0", "reward": 1.0}, {"id": "1", "reward": 0.5, "end": "größer"}]
TABLE = {
    "name": "results",
    "title": "Results",
    "note": "",
    "columns": [{"name": "policy", "kind": "text"}, {"name": "reward", "kind": "interval"}],
    "rows": [{"policy": "sft", "reward": {"mean": 0.75, "low": 0.5, "high": 1.0, "n": 2}}],
}


@pytest.fixture
def store(layout: StoreLayout) -> Path:
    """The store of a run whose job `later` has no result."""
    folder = RunFolder.of(layout, "tiny")
    folder.path.mkdir(parents=True)
    jobs = [
        {"id": name, "kind": kind, "key": name, "produces": artifact}
        for name, (kind, artifact) in JOBS.items()
    ]
    folder.last_plan.write_text(json.dumps({"jobs": jobs}), encoding="utf-8")
    for name, (kind, _) in JOBS.items():
        if name != "later":
            layout.data(f"{kind}/{name}").mkdir(parents=True)
            layout.manifest(f"{kind}/{name}").write_text(json.dumps({"key": name}))
    rows = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in EPISODES)
    (layout.data("rollout/explore") / "trajectories.jsonl").write_text(rows, encoding="utf-8")
    (layout.data("report/report") / TABLES_FILE).write_text(json.dumps({"tables": [TABLE]}))
    return layout.root


def test_tables_rows_folders_and_manifests(store: Path) -> None:
    run = open_run("tiny", store)
    assert run.finished == ("explore", "policy", "report")
    assert list(run.rows("explore")) == EPISODES
    assert run.folder("policy") == store / "objects" / "sft" / "policy" / "data"
    assert run.manifest("policy") == {"key": "policy"}
    assert run.tables["results"].rows == (("sft", TABLE["rows"][0]["reward"]),)  # type: ignore[index]


def test_the_store_that_commands_use_here(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTC_STORE", str(store))
    assert open_run("tiny").name == "tiny"


@pytest.mark.parametrize(
    ("job", "message"),
    [
        ("explor", "no job `explor`; did you mean `explore`"),
        ("later", "`later` of tiny is not finished"),
        ("policy", "makes a Checkpoint, which has no rows"),
    ],
)
def test_what_has_no_rows(store: Path, job: str, message: str) -> None:
    with pytest.raises(ResultsError, match=message):
        open_run("tiny", store).rows(job)


def test_a_run_that_is_not_there(store: Path) -> None:
    with pytest.raises(ResultsError, match="did you mean `tiny`"):
        open_run("tinny", store)


def test_a_run_without_a_report(store: Path, layout: StoreLayout) -> None:
    layout.manifest("report/report").unlink()
    with pytest.raises(ResultsError, match="`report` of tiny is not finished"):
        open_run("tiny", store).tables  # noqa: B018

"""Commands about runs find the one that is meant: a smoke run does not hide the full one."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from agentc.backend_api import load_backends
from agentc.cli import choose_run, main
from agentc.compilation import compile_spec
from agentc.plan.render import document_text, plan_document
from agentc.plan.work import find_work, object_of
from agentc.run.record import Record
from agentc.runtime.store.layout import StoreLayout
from agentc.store.gc import find_garbage
from agentc.store.paths import RunFolder, Variant, variant_of
from agentc.store.run_history import PastRun

SPEC = Path(__file__).parents[2] / "specs" / "quickstart.yaml"
VERDICTS = {"verdicts": 1, "scale": None, "confidence": 0.95, "claims": []}


def run_it(
    layout: StoreLayout, *, scale: str | None = None, until: str | None = None, **params: str
) -> dict[str, Any]:
    """As `agentc run` would leave it; results are manifests alone, and pages of the report."""
    compiled = compile_spec(SPEC, params, load_backends(), scale=scale)
    assert compiled.plan is not None, compiled.diagnostics
    document: dict[str, Any] = plan_document(compiled.plan)
    folder = RunFolder.of_plan(layout, document)
    work = find_work(document, layout, until)
    record = Record(folder, work, began=1.0)
    record.open(document_text(document), folder.path)
    for job in work.missing:
        data = layout.data(object_of(job))
        data.mkdir(parents=True)
        layout.manifest(object_of(job)).write_text(json.dumps({"id": job["id"], "files": {}}))
        if job["kind"] == "report":
            (data / "index.html").write_text(f"<main>{scale} {params}</main>")
        if job["produces"] == "Verdicts":
            (data / "claims.json").write_text(json.dumps({**VERDICTS, "scale": scale}))
    record.close(0, [])
    # Whole seconds apart, however fast this is.
    number = len(list((layout.root / "runs").iterdir()))
    os.utime(folder.state, (number, number))
    return document


@pytest.fixture
def layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StoreLayout:
    monkeypatch.setenv("AGENTC_STORE", str(tmp_path / "store"))
    (tmp_path / "store").mkdir()
    return StoreLayout(tmp_path / "store")


def say(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main([str(word) for word in words])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def test_the_full_run_after_one_job_of_a_smoke_run(
    layout: StoreLayout, capsys: pytest.CaptureFixture[str]
) -> None:
    full = run_it(layout)
    run_it(layout, scale="smoke", until="expert")
    assert not find_garbage(layout)
    assert "nothing to delete" in say(capsys, "store", "gc")[1]
    code, out, err = say(capsys, "status", "quickstart")
    assert (code, out.split(":")[0]) == (0, "quickstart@smoke")
    assert "`quickstart` (--scale full)" in err
    for words in (("quickstart", "--scale", "full"), (SPEC,)):
        code, out, err = say(capsys, "status", *words)
        assert (code, out.splitlines()[0].split(" of ")[0]) == (0, "quickstart: 23")
        assert err == ""
        code, out, _ = say(capsys, "report", "--claims", *words)
        assert (code, out[:6]) == (0, "claims")
        code, out, _ = say(capsys, "report", *words)
        report = next(object_of(job) for job in full["jobs"] if job["kind"] == "report")
        assert (code, out.strip()) == (0, str(layout.data(report) / "index.html"))
    code, _, err = say(capsys, "report", "--claims", SPEC, "--scale", "smoke")
    assert (code, "quickstart@smoke" in err) == (5, True)
    assert say(capsys, "why", "--full", "sft", "--run", "quickstart", "--scale", "full")[0] == 0


def test_each_has_a_report_and_verdicts(
    layout: StoreLayout, capsys: pytest.CaptureFixture[str]
) -> None:
    run_it(layout)
    run_it(layout, scale="smoke")
    run_it(layout, seed="1")
    assert not find_garbage(layout)
    pages = {say(capsys, "report", SPEC, *more)[1]
             for more in ((), ("--scale", "smoke"), ("-p", "seed=1"))}  # fmt: skip
    assert len(pages) == 3
    _, out, _ = say(capsys, "status", "--all-runs")
    assert [line.split()[0] for line in out.splitlines()[1:]] == [
        "quickstart@seed=1", "quickstart@smoke", "quickstart"
    ]  # fmt: skip
    assert out.count("complete") == 3
    code, _, err = say(capsys, "status", SPEC, "-p", "seed=2")
    assert (code, "no run of `quickstart@seed=2`" in err) == (5, True)


def test_the_only_run_of_a_spec_is_taken_and_full_is_a_scale_everywhere(
    layout: StoreLayout, capsys: pytest.CaptureFixture[str]
) -> None:
    run_it(layout, seed="1")
    for words in ((SPEC,), (SPEC, "--scale", "full", "-p", "seed=1"), ("quickstart",)):
        for command in ("report", "status"):
            code, _, err = say(capsys, command, *words)
            assert code == 0, (command, words, err)
    assert "the only run of quickstart is quickstart@seed=1" in say(capsys, "report", SPEC)[2]
    code, _, err = say(capsys, "report", SPEC, "-p", "seed=2")
    assert (code, "there are `quickstart@seed=1` (-p seed=1)" in err) == (5, True)
    run_it(layout, seed="3")
    code, _, err = say(capsys, "report", SPEC)
    assert (code, "`quickstart@seed=1` (-p seed=1)" in err) == (5, True)
    for command in ("check", "plan", "explain"):
        said = say(
            capsys,
            command,
            SPEC if command != "explain" else "sft",
            *([SPEC] * (command == "explain")),
            "--scale",
            "full",
        )
        assert said[0] == 0, said
    folder = SPEC.parent / "eto"
    assert say(capsys, "check", SPEC, folder / "webshop.yaml", "--scale", "full")[0] == 0


@pytest.mark.parametrize(
    ("params", "label"),
    [
        ({}, "variants"),
        ({"n": "2"}, "variants"),
        ({"n": "3"}, "variants@n=3"),
        ({"n": "3", "twice": "6"}, "variants@n=3"),
        ({"n": "3", "twice": "4"}, "variants@n=3,twice=4"),
        ({"twice": "4"}, "variants"),
        ({"rate": "0.10"}, "variants"),
        ({"rate": "1e-3"}, "variants@rate=0.001"),
        ({"swept": "1"}, "variants@swept=1"),
    ],
)
def test_only_what_differs_from_its_default_tells_runs_apart(
    tmp_path: Path, params: dict[str, str], label: str
) -> None:
    spec = tmp_path / "variants.yaml"
    spec.write_text(
        """\
agentc: 1
name: variants
params:
  n: {type: int, default: 2}
  twice: {type: int, default: "{{ 2 * n }}"}
  rate: {type: float, default: 0.1}
  swept: {type: int, default: 1}
matrix: {swept: [1, 2]}
stages: {}
"""
    )
    module = compile_spec(spec, params, load_backends()).module
    assert module is not None
    document = {"name": module.name, "chosen": module.chosen}
    assert variant_of(document).label == label


@pytest.mark.parametrize(
    ("typed", "fits"),
    [
        ({"rate": "1e-5"}, True),
        ({"rate": "0.00001", "seed": "7"}, True),
        ({"rate": "1e-6"}, False),
        ({"sizes": "1,2"}, True),
        ({"sizes": "[1, 2]"}, True),
        ({"sizes": "1,3"}, False),
        ({"sizes": "1"}, False),
        ({"seed": "7.0"}, True),
        ({"seed": "seven"}, False),
        ({"on": "1"}, False),
        ({"on": "true", "word": "1e-5"}, True),
        ({"word": "0.00001"}, False),
        ({"unknown": "7"}, False),
    ],
)
def test_a_run_is_found_by_params_as_they_were_typed(typed: dict[str, str], fits: bool) -> None:
    params = {"rate": 1e-05, "seed": 7, "sizes": [1, 2], "on": True, "word": "1e-5"}
    run = PastRun(folder=RunFolder(Path("x")), began=0.0, variant=Variant(name="x"), params=params)
    assert choose_run._fits(run, None, typed) is fits

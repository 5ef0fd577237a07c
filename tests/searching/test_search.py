"""`search:` in a spec, and `agentc search` with the real Optuna: what is understood, what is
refused, that no plan knows of it, and that a search which was killed goes on as if it had not been.
`make software-long` builds what the last needs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from tests.support.patience import PATIENCE_S

from agentc.backend_api import BackendTable, load_backends
from agentc.backend_api.trackers import installed_searcher
from agentc.compilation import Compilation, compile_spec
from agentc.plan.render import plan_document
from agentc.published.json_schema import language_schema
from agentc.runtime.store.layout import StoreLayout
from agentc.searching.objective import measures_of
from agentc.searching.study import Study, needed_by_searcher

ROOT = Path(__file__).resolve().parents[2]
CLIMB = ROOT / "specs" / "search" / "climb.yaml"


@pytest.fixture(scope="module")
def table() -> BackendTable:
    return load_backends()


def compiled(
    folder: Path, table: BackendTable, change: dict[str, Any] | None, **given: str
) -> Compilation:
    """The shipped spec with another `search:` (None: without one)."""
    spec = yaml.safe_load(CLIMB.read_text(encoding="utf-8"))
    search = {**spec.pop("search"), **(change or {})}
    for script in CLIMB.parent.glob("*.py"):
        (folder / script.name).write_bytes(script.read_bytes())
    if change is not None:
        spec["search"] = search
    path = folder / "climb.yaml"
    path.write_text(yaml.safe_dump(spec, sort_keys=False), encoding="utf-8")
    return compile_spec(path, given, table)


def test_what_is_understood(tmp_path: Path, table: BackendTable) -> None:
    module = compiled(tmp_path, table, {"direction": "minimize"}).module
    assert module is not None
    assert module.search is not None
    start, stride = module.search.axes
    assert start.choices == (-1.0, -0.5, 0.0, 0.5)
    assert (stride.low, stride.high, stride.log, stride.integer) == (0.01, 1, True, False)
    assert (module.search.direction, module.search.metric) == ("minimize", "reward")
    module = compiled(tmp_path, table, {}, start="0.5").module
    assert module is not None
    assert module.search is not None
    assert [axis.name for axis in module.search.axes] == ["stride"]


@pytest.mark.parametrize(("direction", "best"), [("maximize", 2), ("minimize", 1)])
def test_the_best_trial_is_the_first_of_those_with_the_best_value(
    direction: str, best: int, tmp_path: Path, table: BackendTable
) -> None:
    module = compiled(tmp_path, table, {"direction": direction}).module
    assert module is not None
    assert module.search is not None
    values = [("pruned", -9.0), ("complete", -1.0), ("complete", 3.0), ("complete", 3.0)]
    values += [("complete", -1.0), ("failed", None), ("running", None)]
    trials = [
        {"number": n, "params": {}, "state": state, "value": value, "steps": {}, "why": ""}
        for n, (state, value) in enumerate(values)
    ]
    searcher: Any = SimpleNamespace(trials=trials)
    found = Study(searcher).best(module.search)
    assert found is not None
    assert found.number == best


def test_the_schema_has_it(table: BackendTable) -> None:
    whole: Any = language_schema(table)
    schema = Draft202012Validator({**whole["properties"]["search"], "$defs": whole["$defs"]})
    search = yaml.safe_load(CLIMB.read_text(encoding="utf-8"))["search"]
    assert schema.is_valid(search)
    assert not schema.is_valid({**search, "over": {"stride": {"low": 0.1}}})


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"over": {"stepp": [1.0]}}, "AGC800"),
        ({"over": {"stride": {"low": 1, "high": 0.1}}}, "AGC801"),
        ({"over": {"stride": {"low": 0.1, "high": 7}}}, "AGC801"),
        ({"over": {"start": {"low": -1, "high": 1, "log": True}}}, "AGC801"),
        ({"over": {"start": [0.1, 0.1]}}, "AGC801"),
        ({"stage": "climb.hight"}, "AGC802"),
        ({"stage": "climb"}, "AGC802"),
        ({"stage": "climb.walk"}, "AGC802"),
        ({"metric": "pass_at(2)"}, "AGC802"),
        ({"trials": 0}, "AGC205"),
    ],
)
def test_what_is_refused(
    tmp_path: Path, table: BackendTable, change: dict[str, Any], code: str
) -> None:
    found = compiled(tmp_path, table, change).diagnostics
    assert [each.code for each in found if each.severity == "error"] == [code]


def test_no_plan_knows_of_it_and_measures_go_by_round(tmp_path: Path, table: BackendTable) -> None:
    plans = []
    for change in (None, {}, {"trials": 3, "seed": 4}):
        plan = compiled(tmp_path, table, change).plan
        assert plan is not None
        plans.append(plan_document(plan))
    assert plans[0]["jobs"] == plans[1]["jobs"] == plans[2]["jobs"]
    measures = measures_of(plans[0], "climb.height")
    assert [(each.round, each.stage) for each in measures] == [
        (1, "climb.1.height"),
        (2, "climb.2.height"),
    ]


HILL = """\
agentc: 1
name: hill
params: {x: {type: float, default: 0.0, min: -3, max: 3, doc: "A place."}}
stages:
  height: {kind: script, run: height.py, output: metrics, params: {x: "{{ x }}"}}
search: {over: {x: [-1.0, 0.0, 1.0]}, stage: height, trials: 3, seed: 5}
"""
_HEIGHT = """\
import json, os, signal, sys
from pathlib import Path

stage = json.loads(Path(sys.argv[1]).read_text())
armed = Path(ARMED)
if armed.exists():
    # It kills Snakemake above itself, and waits for its own end.
    armed.unlink()
    number = os.getppid()
    while number > 1:
        words = Path(f"/proc/{number}/cmdline").read_text().split("\\0")[:4]
        parent = int(Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[1])
        if any(Path(word).name.endswith("snakemake") for word in words):
            os.kill(number, signal.SIGKILL)
        number = parent
    signal.pause()
x = stage["params"]["x"]
if x == 1:
    raise SystemExit(5)
with Path(stage["output"]["folder"], "scores.jsonl").open("w") as out:
    out.write(json.dumps({"task": "hill", "score": 1 - x * x / 4}) + "\\n")
"""


@pytest.mark.long
def test_a_killed_driver_is_no_fault_of_the_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its trial stays open, and the search ends; a job that fails makes its trial fail."""
    _need_optuna(tmp_path, monkeypatch)
    armed = tmp_path / "armed"
    (tmp_path / "height.py").write_text(_HEIGHT.replace("ARMED", repr(str(armed))))
    spec = tmp_path / "hill.yaml"
    spec.write_text(HILL)
    agentc = [str(Path(sys.executable).with_name("agentc")), "search", str(spec), "--json"]

    def search() -> tuple[int, list[dict[str, Any]], str]:
        words = [*agentc, "--store", str(tmp_path / "store")]
        done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S)
        return done.returncode, json.loads(done.stdout)["trials"], done.stderr

    armed.touch()
    code, trials, said = search()
    assert (code, [trial["state"] for trial in trials if trial["state"] == "failed"]) == (3, [])
    assert "stays open" in said
    assert not armed.exists()
    code, trials, said = search()
    assert code == 0, said
    states = {trial["params"]["x"]: trial["state"] for trial in trials}
    assert states == {-1.0: "complete", 0.0: "complete", 1.0: "failed"}
    (failed,) = (trial for trial in trials if trial["state"] == "failed")
    assert failed["why"] == "height:scores failed"


@pytest.mark.long
def test_a_search_that_was_killed_goes_on_as_if_it_had_not_been(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _need_optuna(tmp_path, monkeypatch)
    agentc = [str(Path(sys.executable).with_name("agentc")), "search", str(CLIMB), "--json"]

    def search(store: Path, *more: str) -> dict[str, Any]:
        words = [*agentc, "--store", str(store), *more]
        done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    unbroken = search(tmp_path / "one")
    assert len(unbroken["trials"]) == 6
    pruned = [trial for trial in unbroken["trials"] if trial["state"] == "pruned"]
    assert pruned
    assert all(list(trial["steps"]) == ["1"] and trial["why"] for trial in pruned)
    complete = [trial for trial in unbroken["trials"] if trial["state"] == "complete"]
    best = max(complete, key=lambda trial: trial["value"])
    assert unbroken["best"] == best["number"]

    words = [*agentc, "--store", str(tmp_path / "two")]
    killed = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + PATIENCE_S
    while len(list((tmp_path / "two" / "runs").glob("climb@*"))) < 2:
        assert time.monotonic() < deadline
        assert killed.poll() is None
        time.sleep(0.1)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    again = search(tmp_path / "two")
    assert again["trials"] == unbroken["trials"]

    made = {path.parent.name for path in (tmp_path / "two").glob("objects/*/*/artifact.json")}
    assert search(tmp_path / "two") == again
    assert {p.parent.name for p in (tmp_path / "two").glob("objects/*/*/artifact.json")} == made


def _need_optuna(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = os.environ.get("AGENTC_SOFTWARE", str(ROOT / ".agentc" / "software"))
    monkeypatch.setenv("AGENTC_SOFTWARE", built)
    searcher = installed_searcher("optuna")
    assert searcher is not None
    if not needed_by_searcher(searcher).ready(StoreLayout(folder)):
        pytest.skip("the software stack optuna is not built: `make software-long`")

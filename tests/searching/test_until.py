"""`until:` of a repeat in a spec: what is understood and refused, that no key depends on it, what a
store makes of a plan. `test_stopping_rule.py` has the rule itself."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from agentc.backend_api import BackendTable, load_backends
from agentc.cli import main
from agentc.cli.spec_work import with_stopped_rounds
from agentc.compilation import Compilation, compile_spec
from agentc.ir.search import StoppingRule
from agentc.plan.render import plan_document
from agentc.plan.work import object_of
from agentc.published.json_schema import language_schema
from agentc.run.report_page import with_run_facts
from agentc.runtime.store.layout import StoreLayout
from agentc.searching.stopping import round_lines

ROOT = Path(__file__).resolve().parents[2]
SUMMIT = ROOT / "specs" / "search" / "summit.yaml"
HEIGHT = {"stage": "height", "reaches": 0.8}


@pytest.fixture(scope="module")
def table() -> BackendTable:
    return load_backends()


def written(
    folder: Path, until: object, change: dict[str, Any] | None = None, n: object = 6
) -> Path:
    """The shipped spec with another rule (None: without one), other top-level keys and rounds."""
    spec = {**yaml.safe_load(SUMMIT.read_text(encoding="utf-8")), **(change or {})}
    repeat = spec["stages"]["climb"]["repeat"]
    repeat["n"] = n
    del repeat["until"]
    if until is not None:
        repeat["until"] = until
    for script in SUMMIT.parent.glob("*.py"):
        (folder / script.name).write_bytes(script.read_bytes())
    path = folder / "summit.yaml"
    path.write_text(yaml.safe_dump(spec, sort_keys=False), encoding="utf-8")
    return path


def document(compiled: Compilation) -> dict[str, Any]:
    assert compiled.plan is not None, compiled.diagnostics
    return plan_document(compiled.plan)


def test_what_is_understood(tmp_path: Path, table: BackendTable) -> None:
    rule = {
        "stage": "height",
        "no_gain_for": 2,
        "min_gain": "{{ stride }}",
        "direction": "minimize",
    }
    module = compile_spec(written(tmp_path, rule), {"stride": "0.5"}, table).module
    assert module is not None
    (found,) = module.stopping
    assert found.rule == StoppingRule(
        metric="reward", direction="minimize", no_gain_for=2, min_gain=0.5
    )
    assert (found.repeat, found.most, len(found.rounds)) == ("climb", 6, 6)
    assert found.measures[:2] == ("climb.1.height", "climb.2.height")


def test_the_schema_has_it(table: BackendTable) -> None:
    whole: Any = language_schema(table)
    schema = Draft202012Validator({**whole["$defs"]["repeat"], "$defs": whole["$defs"]})
    rounds = yaml.safe_load(SUMMIT.read_text(encoding="utf-8"))["stages"]["climb"]
    assert schema.is_valid(rounds)
    rounds["repeat"]["until"]["reach"] = 1
    assert not schema.is_valid(rounds)


@pytest.mark.parametrize(
    ("until", "code", "said"),
    [
        ({"stage": "hight", "reaches": 0.8}, "AGC790", "did you mean `height`?"),
        ({"stage": "climb.height", "reaches": 0.8}, "AGC790", "write `height`"),
        ({"stage": "descend", "reaches": 0.8}, "AGC790", "is outside of the rounds"),
        ({"stage": "walk", "reaches": 0.8}, "AGC790", "write `height`"),
        ({"stage": "height", "metric": "pass_at(2)", "reaches": 0.8}, "AGC790", "no `pass_at(2)`"),
        ({"stage": "height"}, "AGC791", "neither `reaches` nor `no_gain_for`"),
        ({"stage": "height", "reaches": 80}, "AGC791", "write 0.8"),
        ({"stage": "height", "reaches": 0}, "AGC791", "always reached"),
        ({"stage": "height", "reaches": 1, "direction": "minimize"}, "AGC791", "always reached"),
        ({"stage": "height", "reaches": 0.8, "min_gain": 0.1}, "AGC791", "without `no_gain_for`"),
        ({"stage": "height", "reach": 0.8}, "AGC201", "did you mean `reaches`?"),
        ({"stage": "height", "patience": 2}, "AGC201", "did you mean `no_gain_for`?"),
        ({"stage": "height", "no_gain_for": 0}, "AGC205", "no_gain_for"),
        ({"reaches": 0.8}, "AGC202", "needs `stage`"),
        ("height", "AGC203", "cannot be"),
        (None, "AGC202", "needs `stage`"),
    ],
)
def test_what_is_refused(
    tmp_path: Path, table: BackendTable, until: object, code: str, said: str
) -> None:
    spec = written(tmp_path, until or {})
    if until is None:
        spec.write_text(spec.read_text().replace("until: {}", "until:"))
    errors = [
        each for each in compile_spec(spec, {}, table).diagnostics if each.severity == "error"
    ]
    assert [each.code for each in errors] == [code]
    (error,) = errors
    words = [error.message, error.expected, error.fix, *error.notes]
    assert said in "\n".join(str(word) for word in words)
    assert error.span is not None


def test_a_rule_that_ends_nothing_is_told_where_n_is_written(
    tmp_path: Path, table: BackendTable
) -> None:
    patient = {"stage": "height", "no_gain_for": 5}
    found = compile_spec(written(tmp_path, patient), {}, table).diagnostics
    assert [each.code for each in found] == ["AGC793"]
    # Of another choice it may end something.
    params = {"rounds": {"type": "int", "default": 6}, "stride": {"type": "float", "default": 0.1}}
    spec = written(tmp_path, patient, {"params": params}, n="{{ rounds }}")
    assert compile_spec(spec, {}, table).diagnostics == ()


def test_a_search_is_not_measured_in_rounds_that_stop(tmp_path: Path, table: BackendTable) -> None:
    search = {"over": {"stride": [0.1, 0.2]}, "stage": "climb.height"}
    found = compile_spec(written(tmp_path, HEIGHT, {"search": search}), {}, table).diagnostics
    assert [each.code for each in found] == ["AGC802"]


def test_no_key_depends_on_it_and_a_stopped_plan_is_that_of_so_many_rounds(
    tmp_path: Path, table: BackendTable
) -> None:
    all_rounds = document(compile_spec(written(tmp_path, None), {}, table))
    bounded = document(compile_spec(written(tmp_path, HEIGHT), {}, table))
    stopped = document(compile_spec(written(tmp_path, HEIGHT), {}, table, ends={("climb", ()): 3}))
    of_three = document(compile_spec(written(tmp_path, None, n=3), {}, table))
    for job in (*all_rounds["jobs"], *bounded["jobs"], *stopped["jobs"], *of_three["jobs"]):
        del job["origin"]  # lines of the spec
    assert all_rounds["jobs"] == bounded["jobs"]
    assert stopped["jobs"] == of_three["jobs"]
    assert stopped["targets"] == of_three["targets"]
    assert len(stopped["jobs"]) < len(all_rounds["jobs"])


def measured(store: StoreLayout, plan: dict[str, Any], heights: dict[str, float]) -> None:
    """A store that has these measures, by stage."""
    for job in plan["jobs"]:
        if job["produces"] == "Metrics" and job["stage"] in heights:
            data = store.data(object_of(job))
            data.mkdir(parents=True, exist_ok=True)
            scores = {"reward": {"mean": heights[job["stage"]]}}
            (data / "metrics.json").write_text(json.dumps(scores), encoding="utf-8")
            store.manifest(object_of(job)).write_text("{}", encoding="utf-8")


def stopped_by(
    spec: Path, store: StoreLayout, table: BackendTable
) -> tuple[dict[str, Any], list[str]]:
    """The plan that is left of a spec, and what people are told."""
    typed = argparse.Namespace(
        spec=spec, params={}, scale=None, locked=False, allow_paths=[], allow_code=[]
    )
    compiled, rounds = with_stopped_rounds(compile_spec(spec, {}, table), typed, table, store)
    return document(compiled), round_lines(rounds)


def rounds_of(plan: dict[str, Any]) -> dict[str, int]:
    """How many rounds each cell has."""
    stages = [str(job["stage"]) for job in plan["jobs"] if ".height" in str(job["stage"])]
    cells = [stage.partition("@")[2] for stage in stages]
    return {
        cell: len({s for s, c in zip(stages, cells, strict=True) if c == cell}) for cell in cells
    }


def test_the_store_says_where_rounds_stop(tmp_path: Path, table: BackendTable) -> None:
    spec, store = written(tmp_path, HEIGHT), StoreLayout(tmp_path / "store")
    plan = document(compile_spec(spec, {}, table))
    assert stopped_by(spec, store, table) == (
        plan,
        ["climb: up to 6 rounds, until reward reaches 0.8"],
    )
    # A later round than one that is missing decides nothing.
    measured(store, plan, {"climb.1.height": 0.1, "climb.3.height": 0.9})
    found, said = stopped_by(spec, store, table)
    assert found == plan
    assert said == ["climb: up to 6 rounds, until reward reaches 0.8; after round 1: reward 0.1"]
    measured(store, plan, {"climb.2.height": 0.5})
    found, said = stopped_by(spec, store, table)
    assert rounds_of(found) == {"": 3}
    assert said == ["climb: up to 6 rounds; stopped after 3: reward 0.9 reached 0.8"]
    assert f"<dt>rounds</dt><dd>{said[0]}</dd>" in with_run_facts("", found, store)
    # Of the same store a looser rule makes more rounds, a stricter one fewer.
    assert rounds_of(
        stopped_by(written(tmp_path, {**HEIGHT, "reaches": 0.95}), store, table)[0]
    ) == {"": 6}
    assert rounds_of(
        stopped_by(written(tmp_path, {**HEIGHT, "reaches": 0.5}), store, table)[0]
    ) == {"": 2}


def test_each_cell_of_a_sweep_stops_by_itself(tmp_path: Path, table: BackendTable) -> None:
    spec = written(tmp_path, HEIGHT, {"matrix": {"stride": [0.1, 0.2]}})
    store = StoreLayout(tmp_path / "store")
    plan = document(compile_spec(spec, {}, table))
    assert rounds_of(plan) == {"stride=0_1": 6, "stride=0_2": 6}
    measured(store, plan, {"climb.1.height@stride=0_1": 0.5, "climb.1.height@stride=0_2": 0.9})
    found, said = stopped_by(spec, store, table)
    assert rounds_of(found) == {"stride=0_1": 6, "stride=0_2": 1}
    assert len(said) == 2
    known = {object_of(job) for job in plan["jobs"]}
    later = {job["stage"]: object_of(job) for job in found["jobs"]}
    # What comes after goes on from the last round of its own cell.
    assert later["climb.6.walk@stride=0_1"] in known
    assert later["descend@stride=0_1"] in known
    assert later["descend@stride=0_2"] not in known
    ends = {("climb", (0,)): 6, ("climb", (1,)): 1}
    assert document(compile_spec(spec, {}, table, ends=ends))["jobs"] == found["jobs"]


def test_people_are_told_who_follows_the_rule(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "climb.2.height", str(SUMMIT)]) == 0
    assert "rounds: up to 6, until reward reaches 0.8" in capsys.readouterr().out
    assert main(["bundle", "--bare", str(SUMMIT), "-o", str(tmp_path / "out")]) == 0
    assert "only by `agentc run`: this has all rounds" in capsys.readouterr().err

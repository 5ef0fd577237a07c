"""One difference has one interval and one p-value: in the table, the claims, the sweep, a curve."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from agentc_backends.agents.evaluate.metrics import measure
from agentc_backends.results.compare.job_compare import compare
from agentc_backends.results.report.collect import Collection, collect
from agentc_backends.results.report.curves import curve_charts
from agentc_backends.results.report.evaluation_tables import pooled_mean, sweep_tables
from agentc_backends.results.verdicts.claims import judge_all
from agentc_backends.results.verdicts.rules import VerdictRules

SHOWN = ("mean", "low", "high", "p_value", "better", "worse", "equal", "n")


def metrics(rewards: list[float], attempts: int = 2) -> dict[str, Any]:
    rows = [
        {"task_id": f"t{n}", "reward": reward, "success": reward >= 1, "end": "limit",
         "turns": 1, "invalid": 0}
        for n, reward in enumerate(rewards)
        for _ in range(attempts)
    ]  # fmt: skip
    return measure(
        rows, 0.95, success_at=None, split="test", environment="craft",
        reward_range=(0.0, 1.0), protocol={"attempts": attempts},
    )  # fmt: skip


def claim(**changes: Any) -> dict[str, Any]:
    return {
        "name": "gain", "what": "gain", "table": None, "stage": "after",
        "difference_from": "before", "metric": "reward", "relation": "above", "value": 0.0,
        "tolerance": None, "n": None, "seeds": None, "bounds": [-1.0, 1.0], "percent": False,
        "gate": False, **changes,
    }  # fmt: skip


def put(store: Path, type: str, name: str, file: str, content: Any) -> tuple[str, list[Path]]:
    folder = store / "objects" / type.lower() / f"{name.encode().hex():0<32}"
    (folder / "data").mkdir(parents=True)
    made = {"kind": type.lower(), "type": type, "key": folder.name, "inputs": {}}
    (folder / "artifact.json").write_text(json.dumps(made))
    (folder / "data" / file).write_text(json.dumps(content))
    return name, [folder / "data"]


def collected(
    store: Path, runs: dict[str, dict[int, dict[str, Any]]]
) -> tuple[Collection, dict[str, Any]]:
    """A sweep over seeds as the report sees it: {stage: {seed: metrics}}."""
    found, cells = [], {}
    for stage, by_seed in runs.items():
        for seed, one in by_seed.items():
            name = f"{stage}@seed={seed}"
            cells[name] = {"base": stage, "cell": {"seed": seed}}
            found.append(put(store, "Metrics", name, "metrics.json", one))
    cells["results@seed=0"] = {"base": "results", "cell": {"seed": 0}}
    baseline = {"baseline": "before@seed=0"}
    found.append(put(store, "Comparison", "results@seed=0", "comparison.json", baseline))
    seeds = sorted(runs["after"])
    return collect(dict(found), ()), {"matrix": {"seed": seeds}, "cells": cells}


DRAWN = random.Random(4)
DENSE = [DRAWN.choice([0.0, 0.25, 0.5]) for _ in range(60)]
DATA = {
    "four of 51 tasks moved": ([0.0] * 51, [1.0, 1.0, 1.0, 0.5] + [0.0] * 47),
    "none moved": ([0.0] * 51, [0.0] * 51),
    "three tasks": ([0.0, 0.5, 1.0], [0.0, 0.5, 1.0]),
    "dense": (DENSE, [min(1.0, x + DRAWN.choice([0.0, 0.25, 0.5, -0.1])) for x in DENSE]),
}


@pytest.mark.parametrize("name", DATA)
def test_table_claims_and_sweep_say_one_thing(name: str, tmp_path: Path) -> None:
    before, after = map(metrics, DATA[name])
    rows = [("before", before), ("after", after)]
    table = compare(rows, rows[0], 0.95)["rows"][1]["difference"]
    [judged] = judge_all([claim()], dict(rows), VerdictRules(confidence=0.95, power=0.8), None)
    [sweep] = sweep_tables(*collected(tmp_path, {"before": {0: before}, "after": {0: after}}))
    swept = next(row["difference"] for row in sweep["rows"] if row["stage"] == "after")
    assert {k: table[k] for k in SHOWN} == {k: judged["observed"][k] for k in SHOWN}
    assert {k: table[k] for k in SHOWN} == {k: swept[k] for k in SHOWN}
    assert (judged["verdict"] == "supported") == (table["p_value"] < 0.05 and table["mean"] > 0)
    assert table["low"] < table["high"]


def test_several_seeds_are_pooled_in_one_way(tmp_path: Path) -> None:
    draw = random.Random(5)
    runs: dict[str, dict[int, dict[str, Any]]] = {"before": {}, "after": {}}
    for seed in range(3):
        base = [draw.choice([0.0, 0.5, 1.0]) for _ in range(30)]
        gain = 0.05 * seed
        runs["before"][seed] = metrics(base)
        runs["after"][seed] = metrics([min(1.0, x + gain * draw.random()) for x in base])
    [sweep] = sweep_tables(*collected(tmp_path, runs))
    swept = next(row["difference"] for row in sweep["rows"] if row["stage"] == "after")
    named = {f"{stage}{n}": m for stage, by in runs.items() for n, m in by.items()}
    said = claim(runs=[[f"after{n}", f"before{n}"] for n in range(3)])
    [judged] = judge_all([said], named, VerdictRules(confidence=0.95, power=0.8), None)
    assert {k: swept[k] for k in SHOWN} == {k: judged["observed"][k] for k in SHOWN}
    assert swept["runs"] == 3
    assert (swept["p_value"] < 0.05) == (not swept["low"] <= 0 <= swept["high"])


def test_a_curve_over_seeds_is_the_sweeps_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seeds of one experiment are one line, whose points have the pooled interval."""
    runs = {s: metrics([0.25 * s] * 10 + [1.0] * 5) for s in (0, 1)}
    base = metrics([0.0] * 15)
    collection, experiment = collected(
        tmp_path, {"before": dict.fromkeys(runs, base), "after": runs}
    )

    def point(stage: str, one: dict[str, Any]) -> dict[str, Any]:
        return {"label": stage, "evaluation": stage, "metrics": [one],
                "reward": one["reward"], "success": one["success"]}  # fmt: skip

    experiment["cells"]["before"] = {"base": "before", "cell": {}}
    lines = [[point("before", base), point(f"after@seed={s}", runs[s])] for s in runs]
    charts = "agentc_backends.results.report.curves"
    monkeypatch.setattr(f"{charts}.learning_curves", lambda _: [{"name": "craft", "lines": lines}])
    drawn: list[Any] = []
    monkeypatch.setattr(f"{charts}.both_charts", lambda lines, **_: drawn.append(lines) or "<svg>")
    shown = curve_charts(collection, experiment)
    [line] = drawn[0]
    pooled = pooled_mean(list(runs.values()), "reward")
    assert pooled is not None
    assert line.intervals[1] == (pooled["low"], pooled["high"])
    assert line.label == "after (2 runs)"
    assert shown[0]["legend"] == []

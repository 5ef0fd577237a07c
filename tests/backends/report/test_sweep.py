"""The table over a sweep: pooling over seeds, pairing, and cells that share an evaluation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentc_backends.results.report.collect import collect
from agentc_backends.results.report.evaluation_tables import pooled_mean, sweep_tables


def evaluation(
    store: Path,
    name: str,
    scores: dict[str, float | None],
    bounds: tuple[float, float] = (0.0, 1.0),
) -> tuple[str, list[Path]]:
    """An evaluate object of a store, as the report is given it."""
    folder = store / "objects" / "evaluate" / f"{name.encode().hex():0<32}"
    (folder / "data").mkdir(parents=True)
    made = {"kind": "evaluate", "type": "Metrics", "key": folder.name, "inputs": {}}
    (folder / "artifact.json").write_text(json.dumps(made))
    tasks = {
        task: {"reward": reward, "success": reward, "attempts": int(reward is not None)}
        for task, reward in scores.items()
    }
    metrics = {"name": "craft/test", "tasks": tasks, "reward_range": bounds}
    (folder / "data" / "metrics.json").write_text(json.dumps(metrics))
    return name, [folder / "data"]


def comparison(store: Path, name: str, baseline: str, **more: Any) -> tuple[str, list[Path]]:
    folder = store / "objects" / "compare" / f"{name.encode().hex():0<32}"
    (folder / "data").mkdir(parents=True)
    made = {"kind": "compare", "type": "Comparison", "key": folder.name, "inputs": {}}
    (folder / "artifact.json").write_text(json.dumps(made))
    (folder / "data" / "comparison.json").write_text(json.dumps({"baseline": baseline, **more}))
    return name, [folder / "data"]


@pytest.fixture
def tables(tmp_path: Path) -> list[dict[str, Any]]:
    """Two seeds and two models; the untrained score depends on the model alone."""
    found = []
    cells: dict[str, Any] = {}
    for model, start in (("a", 0.0), ("b", 0.2)):
        name = f"untrained@model={model}"
        cells[name] = {"base": "untrained", "cell": {"model": model}}
        found.append(evaluation(tmp_path, name, {"x": start, "y": start}))
        for seed in (0, 1):
            name = f"trained@model={model},seed={seed}"
            cells[name] = {"base": "trained", "cell": {"model": model, "seed": seed}}
            gain = start + 0.5 + 0.1 * seed
            found.append(evaluation(tmp_path, name, {"x": gain, "y": gain}))
    cells["results@model=a"] = {"base": "results", "cell": {"model": "a"}}
    found.append(comparison(tmp_path, "results@model=a", "untrained@model=a"))
    experiment = {"matrix": {"model": ["a", "b"], "seed": [0, 1]}, "cells": cells}
    return sweep_tables(collect(dict(found), ()), experiment)


def test_seeds_are_pooled_and_other_axes_are_rows(tables: list[dict[str, Any]]) -> None:
    (table,) = tables
    rows = {(row["stage"], *row["cell"]): row for row in table["rows"]}
    assert sorted(rows) == [
        ("trained", "a"),
        ("trained", "b"),
        ("untrained", "a"),
        ("untrained", "b"),
    ]
    assert rows["trained", "b"]["runs"] == 2
    assert rows["trained", "b"]["reward"]["mean"] == pytest.approx(0.75)
    assert rows["trained", "b"]["each"] == pytest.approx([0.7, 0.8])


def test_differences_are_from_the_baseline_of_the_same_cell(tables: list[dict[str, Any]]) -> None:
    rows = {(row["stage"], *row["cell"]): row for row in tables[0]["rows"]}
    assert tables[0]["baseline"] == "untrained"
    for model in ("a", "b"):
        assert rows["untrained", model]["difference"] is None
        difference = rows["trained", model]["difference"]
        assert difference["mean"] == pytest.approx(0.55)
        # Two seeds that differ say little of others.
        assert difference["low"] < 0.5
        assert difference["high"] > 0.6
        assert (difference["runs"], difference["better"]) == (2, 2)


def test_without_a_matrix_there_is_no_table(tmp_path: Path) -> None:
    found = dict([evaluation(tmp_path, "one", {"x": 1.0})])
    assert sweep_tables(collect(found, ()), {}) == []


def test_pooling_takes_tasks_that_all_runs_have() -> None:
    def run(**scores: float | None) -> dict[str, Any]:
        return {"tasks": {task: {"reward": r, "attempts": 1} for task, r in scores.items()}}

    found = pooled_mean([run(x=1.0, y=0.0), run(x=1.0)], "reward")
    assert found is not None
    assert found["mean"] == 1.0
    assert pooled_mean([run(x=1.0), run(y=1.0)], "reward") is None


def test_a_task_that_was_lost_to_errors_leaves_the_table_standing(tmp_path: Path) -> None:
    found = [
        evaluation(tmp_path, "trained@seed=0", {"x": 1.0, "y": 0.5}),
        evaluation(tmp_path, "trained@seed=1", {"x": None, "y": 0.5}),
    ]
    cells = {f"trained@seed={n}": {"base": "trained", "cell": {"seed": n}} for n in (0, 1)}
    [table] = sweep_tables(collect(dict(found), ()), {"matrix": {"seed": [0, 1]}, "cells": cells})
    [row] = table["rows"]
    assert row["reward"]["mean"] == 0.5
    assert row["each"] == [0.75, 0.5]


def test_the_axis_reaches_as_far_as_the_rewards(tmp_path: Path) -> None:
    """Twenty questions leave up to 20 of them."""
    name, folders = evaluation(tmp_path, "play@seed=0", {"x": 12.0, "y": 17.0}, (0.0, 20.0))
    experiment = {
        "name": "twenty",
        "matrix": {"seed": [0]},
        "cells": {name: {"base": "play", "cell": {"seed": 0}}},
    }
    [table] = sweep_tables(collect({name: folders}, ()), experiment)
    low, high = table["scale"]
    assert low <= table["rows"][0]["reward"]["low"]
    assert table["rows"][0]["reward"]["high"] <= high
    assert high > 1


def test_the_best_of_several_attempts_is_pooled_like_any_score(tmp_path: Path) -> None:
    """Over runs and tasks by the inference of claims; a row of its own, as papers print it."""
    found, cells, documents = [], {}, []
    for seed, (x, y) in enumerate([(0.25, 0.5), (0.375, 0.75), (0.125, 0.5)]):
        name = f"sampled@seed={seed}"
        cells[name] = {"base": "sampled", "cell": {"seed": seed}}
        name, [folder] = evaluation(tmp_path, name, {"x": x, "y": y})
        metrics = json.loads((folder / "metrics.json").read_text())
        for task, (best, passed) in {"x": (0.5, 0.25), "y": (0.625 + x, 1.0)}.items():
            metrics["tasks"][task] |= {"best_of(4)": best, "pass_at(4)": passed, "attempts": 4}
        metrics["best_of"] = [4]
        (folder / "metrics.json").write_text(json.dumps(metrics))
        documents.append(metrics)
        found.append((name, [folder]))
    found.append(comparison(tmp_path, "results@seed=0", "sampled@seed=0"))
    cells["results@seed=0"] = {"base": "results", "cell": {"seed": 0}}
    found.append(comparison(tmp_path, "lengths@seed=0", "revise@seed=0", scores=["a", "b"]))
    experiment = {"matrix": {"seed": [0, 1, 2]}, "cells": cells}
    [table] = sweep_tables(collect(dict(found), ()), experiment)
    # A comparison of revisions has another baseline, and says nothing of evaluations.
    assert table["baseline"] == "sampled"
    plain, best = table["rows"]
    assert [plain["stage"], best["stage"]] == ["sampled", "sampled, best of 4"]
    assert best["runs"] == 3
    assert best["reward"] == pooled_mean(documents, "best_of(4)")
    assert best["reward"]["method"] == "two-way"
    assert best["each"] == [0.6875, 0.75, 0.625]
    assert best["difference"]["mean"] == pytest.approx(
        best["reward"]["mean"] - plain["reward"]["mean"]
    )
    assert best["difference"]["p_holm"] == best["difference"]["p_value"]

"""The table over a sweep: pooling over seeds, pairing, and cells that share an evaluation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentc_backends.report_html.collect import collect
from agentc_backends.report_html.sweep import pooled, sweep_tables


def evaluation(store: Path, name: str, scores: dict[str, float]) -> tuple[str, list[Path]]:
    """An evaluate object of a store, as the report is given it."""
    folder = store / "objects" / "evaluate" / f"{name.encode().hex():0<32}"
    (folder / "data").mkdir(parents=True)
    made = {"kind": "evaluate", "type": "Metrics", "key": folder.name, "inputs": {}}
    (folder / "artifact.json").write_text(json.dumps(made))
    tasks = {task: {"reward": reward, "n": 1} for task, reward in scores.items()}
    metrics = {"name": "craft/test", "tasks": tasks}
    (folder / "data" / "metrics.json").write_text(json.dumps(metrics))
    return name, [folder / "data"]


def comparison(store: Path, name: str, baseline: str) -> tuple[str, list[Path]]:
    folder = store / "objects" / "compare" / f"{name.encode().hex():0<32}"
    (folder / "data").mkdir(parents=True)
    made = {"kind": "compare", "type": "Comparison", "key": folder.name, "inputs": {}}
    (folder / "artifact.json").write_text(json.dumps(made))
    (folder / "data" / "comparison.json").write_text(json.dumps({"baseline": baseline}))
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
        # The seeds differ by 0.1: the interval spans them both.
        assert (difference["low"], difference["high"]) == pytest.approx((0.5, 0.6))


def test_without_a_matrix_there_is_no_table(tmp_path: Path) -> None:
    found = dict([evaluation(tmp_path, "one", {"x": 1.0})])
    assert sweep_tables(collect(found, ()), {}) == []


def test_pooling_takes_tasks_that_all_runs_have() -> None:
    found = pooled([{"x": 1.0, "y": 0.0}, {"x": 1.0}])
    assert found is not None
    assert found["mean"] == 1.0
    assert pooled([{"x": 1.0}, {"y": 1.0}]) is None
    assert pooled([]) is None

"""The report on runs of online RL: curves by what was played, seeds together, models in a line."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from agentc_backends.results.report.collect import collect
from agentc_backends.results.report.curves import run_charts
from agentc_backends.results.report.page import render_page


def curve(means: list[float], episodes: int = 16) -> dict[str, str]:
    rows = [
        {
            "iteration": number,
            "trajectories": episodes * (number + 1),
            "steps": 100 * (number + 1),
            "reply_tokens": 900 * (number + 1),
            "return": {"mean": mean, "sd": 4.0, "n": episodes},
        }
        for number, mean in enumerate(means)
    ]
    return {"curve.jsonl": "".join(json.dumps(row) + "\n" for row in rows)}


def test_each_run_is_a_line_of_three_charts(example_store: Any, experiment: Any) -> None:
    example_store.add("archer", "online_rl", "PolicyRun", curve([-5.0, -1.5, 3.0]))
    example_store.add("filtered", "online_rl", "PolicyRun", curve([-5.0, 0.5, 2.0]))
    example_store.add("short", "online_rl", "PolicyRun", curve([-5.0]))
    offline = "".join(json.dumps({"iteration": number, "critic": {}}) + "\n" for number in range(3))
    example_store.add("offline", "offline_rl", "PolicyRun", {"curve.jsonl": offline})
    collection = collect(example_store.inputs, experiment["rounds"])
    charts = run_charts(collection)
    assert [chart["title"].rpartition(", by ")[2] for chart in charts] == [
        "trajectories",
        "steps of the environment",
        "tokens of replies",
    ]
    assert all(chart["legend"] == ["archer", "filtered"] for chart in charts)
    assert "archer, iteration 2: 3.000" in charts[0]["svg"]
    page = render_page(collection, experiment, trajectories=5)
    assert len(re.findall(r"<figcaption>return while training", page)) == 3
    assert 't-policyrun"></i>PolicyRun' in page


def test_seeds_are_one_line_with_the_interval_of_their_mean(
    example_store: Any, experiment: Any
) -> None:
    cells = {}
    for seed, end in enumerate((1.0, 2.0, 6.0)):
        name = f"archer@seed={seed}"
        example_store.add(name, "online_rl", "PolicyRun", curve([-5.0, end]))
        cells[name] = {"base": "archer", "cell": {"seed": seed}}
    about = {**experiment, "matrix": {"seed": [0, 1, 2]}, "cells": cells}
    [chart, *_] = run_charts(collect(example_store.inputs, []), about)
    assert chart["legend"] == ["archer (3 runs)"]
    assert "archer, iteration 1: 3.000" in chart["svg"]


def test_nothing_without_a_run(example_store: Any) -> None:
    assert run_charts(collect(example_store.inputs, [])) == []


@pytest.mark.parametrize("length", [2, 41, 500])
def test_long_runs_are_thinned_and_end_where_they_end(length: int, example_store: Any) -> None:
    example_store.add("long", "online_rl", "PolicyRun", curve([float(n) for n in range(length)]))
    [chart, *_] = run_charts(collect(example_store.inputs, []))
    _, whole, column = chart["svg"].split("<svg")
    for drawn in (whole, column):
        points = re.findall(r"iteration (\d+):", drawn)
        assert (points[0], points[-1]) == ("0", str(length - 1))
        assert len(points) <= 41

"""Training curves: quantities, rounds on one axis, seeds over each other, values at the pointer."""

from __future__ import annotations

import json
import math
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.backends.report.conftest import ExampleStore, training
from tests.backends.report.test_episodes import in_browser
from tests.backends.report.test_report import CHROMIUM, collected

from agentc_backends.results.report.collect import collect
from agentc_backends.results.report.curves import training_charts
from agentc_backends.results.report.drawings import _short
from agentc_backends.results.report.page import render_page


def lines_of(svg: str) -> dict[str, list[tuple[float, float]]]:
    """The values of each line, by its label."""
    found = re.findall(r'data-label="([^"]*)" data-values="([^"]*)"', svg)
    return {
        label: [(float(x), float(y)) for x, y in (each.split(",") for each in values.split())]
        for label, values in found
    }


def test_rounds_are_joined_on_one_axis(example_store: Any, experiment: Any) -> None:
    sft, dpo = training_charts(collected(example_store, experiment), experiment)
    assert [chart["label"] for chart in sft["charts"]] == ["loss", "learning rate"]
    assert [job["name"] for job in dpo["jobs"]] == ["eto.1.dpo", "eto.2.dpo"]
    labels = ["loss", "preference accuracy", "reward margin", "learning rate"]
    assert [chart["label"] for chart in dpo["charts"]] == labels
    loss = dpo["charts"][0]
    [points] = lines_of(loss["svg"]).values()
    log = training(40, preference=True)
    assert [x for x, _ in points] == [float(step) for step in range(1, 81)]
    expected = [row["loss"] for row in log] * 2
    assert [y for _, y in points] == pytest.approx(expected, rel=1e-4)
    assert loss["last"] == log[-1]["loss"]
    assert ">round 2</text>" in loss["svg"]
    assert ">step</text>" in loss["svg"]
    assert ">loss</text>" in loss["svg"]


def test_seeds_lie_over_each_other_and_other_cells_stand_apart(tmp_path: Path) -> None:
    store = ExampleStore(tmp_path / "store")
    cells = {}
    for beta in (0.1, 0.5):
        for seed in range(3):
            name = f"dpo@beta={beta},seed={seed}"
            steps = [{**row, "grad_norm": 1.0 + seed} for row in training(20, preference=True)]
            store.add(name, "dpo", "Checkpoint", {"config.json": "{}"}, steps=steps)
            cells[name] = {"base": "dpo", "cell": {"beta": beta, "seed": seed}}
    about = {"matrix": {"beta": [0.1, 0.5], "seed": [0, 1, 2]}, "cells": cells}
    found = training_charts(collect(store.inputs, []), about)
    assert [len(stage["jobs"]) for stage in found] == [3, 3]
    for stage in found:
        assert stage["legend"] == ["seed=0", "seed=1", "seed=2"]
        [norm] = [chart for chart in stage["charts"] if chart["label"] == "gradient norm"]
        lines = lines_of(norm["svg"])
        assert {label: line[0] for label, line in lines.items()} == {
            f"seed={seed}": (1.0, 1.0 + seed) for seed in range(3)
        }
        assert norm["last"] is None


@pytest.mark.parametrize(
    ("value", "text"), [(0.0005, "5e-4"), (0.0015, "1.5e-3"), (0.02, "0.02"), (-2e-6, "-2e-6")]
)
def test_small_numbers_fit_beside_an_axis(value: float, text: str) -> None:
    assert _short(value) == text


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium to run the page's script")
@pytest.mark.slow
def test_in_a_browser_the_pointer_shows_values(
    example_store: Any, experiment: Any, tmp_path: Path
) -> None:
    page = render_page(collected(example_store, experiment), experiment, trajectories=5)
    page = re.sub("<meta http-equiv[^>]*>", "", page)
    script = """<script>
    const at = (chart, share) => {
      chart.scrollIntoView();
      const {left, width, top, height} = chart.getBoundingClientRect();
      const place = {clientX: left + share * width, clientY: top + height / 2, bubbles: true};
      chart.dispatchEvent(new PointerEvent("pointermove", place));
      return document.querySelector(".hover").textContent;
    };
    const [curve, loss] = ["curves", "training"].map((id) => document.querySelector(`#${id} svg`));
    const found = [at(curve, 0.99), at(loss, 0.99), at(loss, 0.03)];
    document.title = JSON.stringify(found);
    </script>"""
    shown = in_browser(page + script, tmp_path)
    curve, last, first = json.loads(re.findall("<title>(.*?)</title>", shown)[0])
    assert re.fullmatch(r"eto\.2\.dpo \(eto\.2\.evaluate\): 0\.\d{3}", curve)
    log = training(90, preference=False)
    assert last == f"sft, step 90: {log[-1]['loss']:.5g}"
    assert first == f"sft, step 1: {log[0]['loss']:.5g}"


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium to run the page's script")
@pytest.mark.slow
def test_in_a_browser_curves_are_smoothed_and_get_a_log_axis(
    example_store: Any, experiment: Any, tmp_path: Path
) -> None:
    page = render_page(collected(example_store, experiment), experiment, trajectories=5)
    page = re.sub("<meta http-equiv[^>]*>", "", page)
    script = """<script>
    const form = document.querySelector("#training form");
    const chart = document.querySelector("#training svg.whole");
    const seen = (smoothing, log) => {
      form.elements.smoothing.value = smoothing;
      form.elements.log.checked = log;
      form.dispatchEvent(new Event("input", { bubbles: true }));
      const points = chart.querySelector("polyline.line").getAttribute("points");
      return { points: points.split(" ").map((each) => Number(each.split(",")[1])),
        raw: chart.querySelectorAll("polyline.raw").length,
        ticks: [...chart.querySelectorAll("g.rows:not(.off) text")].map((one) => one.textContent) };
    };
    const found = [seen(0, false), seen(0.9, false), seen(0, true), seen(0, false)];
    document.title = JSON.stringify(found);
    </script>"""
    shown = in_browser(page + script, tmp_path)
    plain, smooth, log, again = json.loads(re.findall("<title>(.*?)</title>", shown)[0])
    assert plain == again
    roughness = [sum(abs(b - a) for a, b in pairwise(each["points"])) for each in (plain, smooth)]
    assert roughness[1] < 0.8 * roughness[0]
    assert (plain["raw"], smooth["raw"]) == (0, 1)
    assert smooth["points"][0] == pytest.approx(plain["points"][0], abs=0.2), "no bias at the start"
    ticks = [float(text) for text in log["ticks"]]
    low, high = ticks[0], ticks[-1]
    losses = [row["loss"] for row in training(90, preference=False)]
    assert low <= min(losses) < max(losses) <= high
    heights = [math.log(loss / low) / math.log(high / low) for loss in losses]
    section = page.split('<section id="training">')[1]
    frame = re.findall(r'class="chart whole"[^>]*data-frame="([^"]*)"', section)[0].split()
    top, floor = map(float, frame[2:4])
    expected = [floor - height * (floor - top) for height in heights]
    assert log["points"] == pytest.approx(expected, abs=0.3)

"""Where an estimate is for: this machine under its load, a queue, or GPUs that are asked about."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentc.backend_api import BackendTable
from agentc.cli.cost import find_place
from agentc.cost import estimate_plan, summarise
from agentc.cost.place import Place, PlaceError, place_of_hardware, slowdown
from agentc.placement.profile import find_profile
from agentc.runtime.store.layout import StoreLayout


@pytest.mark.parametrize(
    ("text", "gpus", "card", "cores"),
    [
        ("8xa100-80gb", 8, "a100", 128),
        ("4 x H100", 4, "h100", 64),
        ("a100", None, "a100", 128),
        ("1xt4", 1, "t4", 16),
    ],
)
def test_hardware_by_number_and_card(text: str, gpus: int | None, card: str, cores: int) -> None:
    place = place_of_hardware(text)
    assert (place.gpus, place.card, place.cores, place.here) == (gpus, card, cores, False)
    assert place_of_hardware(text, 7).cores == 7


@pytest.mark.parametrize("text", ["8xa1000", "a1OO", "0xa100", "eight", "8x", "a30-24gb"])
def test_unknown_hardware_lists_the_known(text: str) -> None:
    with pytest.raises(PlaceError, match=r"known GPUs: .*a100-80gb.*h200-141gb"):
        place_of_hardware(text)


def test_a_queue_has_neither_the_load_nor_the_cores_of_the_login_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (99.0, 0.0, 0.0))
    slurm = find_profile("slurm", {})
    assert slurm is not None
    for place in (find_place(None, slurm, 7), find_place("slurm", None, 7)):
        assert place == Place(cores=7, queued=True, name="slurm")
    assert find_place("slurm", None, None).cores >= 50
    assert find_place("here", slurm, 1).slowdown > 2
    assert find_place("8xa100", None, None).slowdown == 1.0


def test_the_load_slows_only_what_it_is_in_the_way_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (6.0, 0.0, 0.0))
    assert slowdown(cores=16, wanted=8) == 1.0
    assert slowdown(cores=8, wanted=8) > slowdown(cores=8, wanted=4) > 1.0
    assert slowdown(cores=2, wanted=2) == pytest.approx(2.5)
    monkeypatch.setattr(os, "getloadavg", lambda: (0.0, 0.0, 0.0))
    assert slowdown(cores=2, wanted=64) == 1.0


def test_jobs_on_cpus_teach_nothing_about_gpus(
    planned: Callable[..., dict[str, Any]], table: BackendTable, finish: Callable[..., Path]
) -> None:
    """A store with a whole CPU run of a paper's spec leaves the GPU-hours of that paper as they
    are, whatever its expert, its trainings and its servers took."""
    document = planned("eto/webshop")
    small = planned("eto/webshop", scale="tiny")
    facts = {"episodes": 9, "turns": 90, "completion_tokens": 9000, "prompt_tokens": 90000,
             "rows": 9, "tokens": 9000, "steps": 3}  # fmt: skip
    before = summarise(document, estimate_plan(document, None, table=table), Place(cores=2))
    for job in small["jobs"]:
        store = finish(small, job["id"], wall_s=500.0, facts=facts)
    layout = StoreLayout(store)
    after = estimate_plan(document, layout, table=table)
    assert summarise(document, after, Place(cores=2)).gpu_hours == before.gpu_hours
    assert {each.basis for each in after.values() if each.gpus} == {"prior"}
    moved = estimate_plan(planned("eto/webshop", scale="tiny", seed="3"), layout, table=table)
    assert any(each.like for each in moved.values()), "of its like it is"

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
from agentc.cost.fitting import misfits
from agentc.cost.place import Place, PlaceError, place_of_hardware, slowdown
from agentc.memory.render import memory_label, memory_text, on_card
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


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (None, ()),
        ("8xa100-80gb", ()),
        ("a100", ()),
        ("8xa100-40gb", ("3 jobs (sft needs 43.3 GB of each GPU, a100-40gb has 40.0)",)),
        ("a100-40gb", ("3 jobs (sft needs 43.3 GB of each GPU, a100-40gb has 40.0)",)),
        ("1xa100-80gb", ("3 jobs (sft needs 4 GPUs, 1 named)",)),
        (
            "1xrtx4090-24gb",
            (
                "3 jobs (sft needs 43.3 GB of each GPU, rtx4090-24gb has 24.0)",
                "3 jobs (sft needs 4 GPUs, 1 named)",
            ),
        ),
    ],
)
def test_jobs_are_compared_with_the_gpus_that_are_named(
    planned: Callable[..., dict[str, Any]], text: str | None, lines: tuple[str, ...]
) -> None:
    place = Place(cores=2) if text is None else place_of_hardware(text)
    document = planned("eto/webshop")
    running = {f"{job['kind']}/{job['key']}" for job in document["jobs"]}
    assert misfits(document, running, place) == tuple(f"does not fit: {line}" for line in lines)


def test_models_that_request_no_gpu_are_named() -> None:
    memory = {"gpus": 0, "device": 374e9, "mem_mb": 356_674, "parts": {}, "cores": 0}
    job = {"id": "sft", "stage": "sft", "kind": "sft", "key": "k", "memory": memory}
    (line,) = misfits({"jobs": [job]}, {"sft/k"}, place_of_hardware("1xrtx4090-24gb"))
    assert line.startswith("uses no GPU: 1 job (sft needs 374 GB of main memory")


def test_the_memory_of_jobs_is_that_of_the_named_gpu(
    planned: Callable[..., dict[str, Any]],
) -> None:
    jobs = {job["id"]: job for job in planned("eto/webshop")["jobs"]}
    assert memory_label(jobs["sft"]) == "43.3 of 80.0 GB"
    assert memory_label(on_card(jobs["sft"], "a100-40gb")) == "43.3 of 40.0 GB"
    server = on_card(jobs["eto.1.explore"], "a100-40gb")
    assert memory_label(server) == "16.4 of 36.0 GB", "vLLM fills nine tenths"
    assert "(a100-40gb has 40.0 for it)" in memory_text([on_card(jobs["sft"], "a100-40gb")])


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

"""Processes that divide a model train what one process trains, and leave the same checkpoint."""

from __future__ import annotations

import json
import math
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from tests.torch.trl.jobs import (
    difference,
    facts,
    launch,
    limited,
    pairs,
    run_here,
    small_model,
    start,
    steps,
    trainer_job,
    trajectories,
    wait_for_step,
    weights,
    write_rows,
)
from tests.torch.trl.programs import run_program

from agentc_backends.trainers.common.checks import TrainingOutOfTimeError

SETTINGS: dict[str, Any] = {"epochs": 2, "lr": 1e-3, "micro_batch": 2, "save_every": 2}
STEPS = 2 * math.ceil(20 / 8)
NEAR = 1e-5
Trained = Callable[..., Path]


@pytest.fixture(autouse=True)
def _no_group_is_left() -> Iterator[None]:
    yield
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., dict[str, list[Path]]]:
    """20 rows, so that the last step of an epoch is a small one, and a model whose head is its own,
    as Llama's is."""
    root = tmp_path_factory.mktemp("inputs")
    models = {
        tied: small_model(root / f"model-{tied}", tie_embeddings=tied) for tied in (False, True)
    }
    data = {
        "sft": write_rows(root / "sft", "trajectories.jsonl", trajectories(20)),
        "dpo": write_rows(root / "dpo", "pairs.jsonl", pairs(20)),
    }

    def found(kind: str, tied: bool = False) -> dict[str, list[Path]]:
        return {"model": [models[tied]], "data": [data[kind]]}

    return found


@pytest.fixture(scope="module")
def trained(
    inputs: Callable[..., dict[str, list[Path]]], tmp_path_factory: pytest.TempPathFactory
) -> Trained:
    """Runs a job once for each combination of settings; several processes by their launcher."""
    done: dict[str, Path] = {}

    def train(kind: str, tied: bool = False, **settings: Any) -> Path:
        name = f"{kind}-{tied}-{sorted(settings.items())}"
        if name not in done:
            root = tmp_path_factory.mktemp(kind)
            job = trainer_job(root, kind, inputs(kind, tied), **{**SETTINGS, **settings})
            if settings.get("processes", 1) == 1:
                run_here(job)
            else:
                status, out, err = run_program(job)
                assert status == 0, out + err
            done[name] = root
        return done[name]

    return train


def assert_same(one: Path, other: Path, *, within: float = NEAR) -> None:
    """Losses of every step, and the finished weights."""
    for a, b in zip(steps(one), steps(other), strict=True):
        assert a["loss"] == pytest.approx(b["loss"], abs=within), a["step"]
        assert a["grad_norm"] == pytest.approx(b["grad_norm"], rel=1e-3, abs=within)
    assert difference(one, other) < within


def assert_divided(root: Path, sharding: str, processes: int) -> None:
    """What the job saw of its own model."""
    found = facts(root)
    assert found["world_size"] == processes
    assert found["sharding"]["kept"] == sharding
    assert found["sharding"]["placements"] == ["(Shard(dim=0),)"]
    assert found["sharding"]["share"] == pytest.approx(1 / processes, abs=0.02)


def finished(root: Path) -> bytes:
    return (root / "data" / "model.safetensors").read_bytes()


def files(root: Path) -> set[str]:
    return {path.name for path in (root / "data").iterdir()}


@pytest.mark.parametrize(("sharding", "tied"), [("optimizer", True), ("full", False)])
def test_one_process_divides_nothing_and_trains_the_same_bits(
    trained: Trained, sharding: str, tied: bool
) -> None:
    plain = trained("sft", tied)
    root = trained("sft", tied, sharding=sharding)
    assert_divided(root, sharding, 1)
    assert finished(root) == finished(plain)
    assert files(root) == files(plain)
    assert (root / "data" / "config.json").read_text() == (
        plain / "data" / "config.json"
    ).read_text()
    assert "sharding" not in facts(plain)


@pytest.mark.slow
def test_two_processes_divide_the_model_and_train_the_same(trained: Trained) -> None:
    """`test_every_way_to_divide_trains_the_same` has the others."""
    root = trained("sft", processes=2, sharding="full")
    assert_divided(root, "full", 2)
    assert_same(trained("sft"), root)
    assert list((root / "work").glob("checkpoint-*/shards"))


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("kind", ["sft", "dpo"])
@pytest.mark.parametrize("sharding", ["none", "optimizer", "full"])
@pytest.mark.parametrize("processes", [2, 4])
def test_every_way_to_divide_trains_the_same(
    trained: Trained, kind: str, sharding: str, processes: int, tied: bool
) -> None:
    root = trained(kind, tied, processes=processes, sharding=sharding)
    if sharding != "none":
        assert_divided(root, sharding, processes)
    assert_same(trained(kind, tied), root)


@pytest.mark.slow
@pytest.mark.long
def test_sums_over_processes_are_exact_in_bfloat16_training(trained: Trained) -> None:
    """Weights of the layers are gathered in the type that they are computed in; all else is that
    of a training that divides nothing."""
    plain = trained("sft", processes=2, dtype="bfloat16")
    root = trained("sft", processes=2, dtype="bfloat16", sharding="full")
    assert_same(plain, root, within=1e-3)
    exact = trained("sft", processes=2)
    assert difference(plain, exact) > 1e-4


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("extra", [{"gradient_checkpointing": True}, {"attention": "eager"}])
def test_what_saves_memory_changes_no_result(trained: Trained, extra: dict[str, Any]) -> None:
    assert_same(trained("sft"), trained("sft", processes=2, sharding="full", **extra))


def test_offloaded_shares_train_the_same(trained: Trained) -> None:
    root = trained("sft", sharding="full", offload=True)
    assert facts(root)["sharding"]["offload"] is True
    assert_same(trained("sft"), root)


@pytest.mark.slow
@pytest.mark.long
def test_adapters_stay_whole_beside_a_divided_model(trained: Trained) -> None:
    lora = {"rank": 4, "targets": ["q_proj", "v_proj"]}
    plain = trained("sft", lora=lora)
    root = trained("sft", lora=lora, processes=2, sharding="full")
    assert_same(plain, root)
    assert files(root) == files(plain)


@pytest.mark.slow
@pytest.mark.long
def test_another_reference_is_divided_too(
    inputs: Callable[..., dict[str, list[Path]]], trained: Trained, tmp_path: Path
) -> None:
    given = {**inputs("dpo"), "reference": [trained("sft") / "data"]}
    plain, root = tmp_path / "plain", tmp_path / "root"
    run_here(trainer_job(plain, "dpo", given, **SETTINGS))
    divided = {"processes": 2, "sharding": "full"}
    status, out, err = run_program(trainer_job(root, "dpo", given, **SETTINGS, **divided))
    assert status == 0, out + err
    assert_same(plain, root)
    assert abs(steps(root)[0]["rewards/margins"]) > 1e-3


@pytest.mark.parametrize(("sharding", "dtype"), [("none", "bfloat16"), ("full", "float16")])
def test_checkpoint_is_saved_in_the_type_that_is_asked_for(
    trained: Trained, sharding: str, dtype: str
) -> None:
    exact = weights(trained("sft"))
    root = trained("sft", sharding=sharding, save_dtype=dtype)
    kind = getattr(torch, dtype)
    assert exact.keys() == weights(root).keys()
    for name, value in weights(root).items():
        assert value.dtype == kind
        assert value.equal(exact[name].to(kind)), name
    assert json.loads((root / "data" / "config.json").read_text())["dtype"] == dtype


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("sft", "full", "none"),
        ("sft", "none", "full"),
        ("dpo", "optimizer", "full"),
        pytest.param("sft", "full", "full", marks=pytest.mark.long),
        pytest.param("dpo", "full", "none", marks=pytest.mark.long),
        pytest.param("dpo", "none", "optimizer", marks=pytest.mark.long),
    ],
)
def test_a_rerun_may_divide_something_else(
    inputs: Callable[..., dict[str, list[Path]]],
    trained: Trained,
    tmp_path: Path,
    kind: str,
    before: str,
    after: str,
) -> None:
    """Placement is no part of a key, so a job that was cut off can come back with another one."""
    for step, sharding in ((1, before), (2, after)):
        job = trainer_job(tmp_path, kind, inputs(kind), **SETTINGS, sharding=sharding)
        with pytest.raises(TrainingOutOfTimeError, match=f"at step {step} of {STEPS}"):
            run_here(limited(job, 0))
    run_here(limited(job, None))
    assert [line["step"] for line in steps(tmp_path)] == list(range(1, STEPS + 1))
    assert finished(tmp_path) == finished(trained(kind))


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize(("first", "then"), [(2, 4), (4, 1)])
def test_a_rerun_may_have_other_processes(
    inputs: Callable[..., dict[str, list[Path]]],
    trained: Trained,
    tmp_path: Path,
    first: int,
    then: int,
) -> None:
    for processes, seconds in ((first, 0.0), (then, None)):
        job = trainer_job(
            tmp_path, "sft", inputs("sft"), **SETTINGS, sharding="full", processes=processes
        )
        status, out, err = launch(limited(job, seconds))
        assert status == 0, out + err
        if seconds is not None:
            assert "out of time at step 1 of" in err
            assert json.loads((tmp_path / "progress.json").read_text())["out_of_time"] is True
    assert_same(trained("sft"), tmp_path)


@pytest.mark.slow
def test_killed_processes_leave_what_a_rerun_ends_with_the_same_bits(
    inputs: Callable[..., dict[str, list[Path]]], trained: Trained, tmp_path: Path
) -> None:
    settings = {"processes": 2, "sharding": "full"}
    job = trainer_job(tmp_path, "sft", inputs("sft"), **SETTINGS, **settings)
    process = start(job)
    wait_for_step(tmp_path, 3, process)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    status, out, err = run_program(job)
    assert status == 0, out + err
    assert finished(tmp_path) == finished(trained("sft", **settings))
    assert [line["step"] for line in steps(tmp_path)] == list(range(1, STEPS + 1))


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize(("kind", "sharding"), [("sft", "full"), ("dpo", "optimizer")])
def test_twenty_kills_at_random_moments_change_no_bit(
    inputs: Callable[..., dict[str, list[Path]]], tmp_path: Path, kind: str, sharding: str
) -> None:
    """Also in the middle of a save, of which there is one after every step."""
    settings = {**SETTINGS, "processes": 2, "sharding": sharding, "epochs": 100, "save_every": 1}
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    status, out, err = run_program(trainer_job(whole, kind, inputs(kind), **settings))
    assert status == 0, out + err
    job = trainer_job(cut, kind, inputs(kind), **settings)
    moments = random.Random(f"{kind}/{sharding}")
    reached = 0
    for _ in range(20):
        process = start(job)
        wait_for_step(cut, reached + moments.randint(1, 3), process)
        time.sleep(moments.random() * 0.5)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        reached = json.loads((cut / "progress.json").read_text())["done"]
        assert reached < 300, "it ended before it was killed twenty times"
    status, out, err = run_program(job)
    assert status == 0, out + err
    assert finished(cut) == finished(whole)
    assert [line["step"] for line in steps(cut)] == list(range(1, 301))

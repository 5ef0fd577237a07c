"""Length of a run, the schedule in iterations, the order of rows, and packing: plain arithmetic."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import islice

import pytest

from agentc_backends.data.chat.formats import RowsError
from agentc_backends.data.chat.rows import Side
from agentc_backends.trainers.common.rows import StepSampler
from agentc_backends.trainers.xtuner.schedule import (
    BY_TIME,
    START_FACTOR,
    RowOrder,
    length_of,
    packed_sequences,
    schedulers,
)
from agentc_backends.trainers.xtuner.settings import XtunerSettings

SETTINGS = XtunerSettings(
    max_length=64,
    pack_to_max_length=False,
    batch_size=1,
    accumulative_counts=4,
    max_epochs=1.0,
    max_steps=None,
    lr=2e-5,
    betas=(0.9, 0.999),
    weight_decay=0.0,
    max_norm=1.0,
    scheduler="linear",
    warmup_ratio=0.0,
    dtype="float32",
    use_activation_checkpointing=False,
    seed=0,
    save_steps=None,
    log_steps=1,
    lora=None,
    zero_stage=None,
    attention="sdpa",
    offload=False,
    save_dtype="auto",
)


def rates(settings: XtunerSettings, steps: int) -> list[float]:
    """The share of the learning rate at each optimiser step, by mmengine's definition of the
    schedulers in closed form."""
    accumulation = settings.accumulative_counts
    found = []
    for iteration in range(accumulation - 1, steps * accumulation, accumulation):
        rate = 1.0
        for name, given in schedulers(settings, steps):
            total = given["end"] - given["begin"] - 1
            assert total >= 1, "mmengine would stay at its starting factor"
            done = min(iteration - given["begin"], total)
            if done < 0:
                continue
            if name == "LinearLR":
                start, end = given["start_factor"], given.get("end_factor", 1.0)
                rate *= start + (end - start) * done / total
            else:
                rate *= 0.5 * (1 + math.cos(math.pi * done / given["T_max"]))
        found.append(rate)
    return found


def published(settings: XtunerSettings, steps: int) -> list[float]:
    """The shares that transformers' schedules give, which trl.sft uses."""
    warmup = math.ceil(steps * settings.warmup_ratio)
    found = []
    for step in range(steps):
        if step < warmup:
            found.append(step / warmup)
        elif settings.scheduler == "linear":
            found.append((steps - step) / (steps - warmup))
        elif settings.scheduler == "cosine":
            done = (step - warmup) / (steps - warmup)
            found.append(0.5 * (1 + math.cos(math.pi * done)))
        else:
            found.append(1.0)
    return found


@pytest.mark.parametrize("scheduler", ["linear", "cosine", "constant_with_warmup"])
@pytest.mark.parametrize("ratio", [0.0, 0.03, 0.5, 0.99])
@pytest.mark.parametrize("accumulation", [1, 3, 16])
@pytest.mark.parametrize("steps", [1, 2, 7, 40])
def test_every_step_trains_at_the_rate_of_other_trainers(
    scheduler: str, ratio: float, accumulation: int, steps: int
) -> None:
    settings = replace(
        SETTINGS, scheduler=scheduler, warmup_ratio=ratio, accumulative_counts=accumulation
    )
    assert rates(settings, steps) == pytest.approx(published(settings, steps), abs=2 * START_FACTOR)


@pytest.mark.parametrize(
    ("rows", "processes", "epochs", "steps"),
    [(16, 1, 1.0, 4), (17, 1, 1.0, 5), (16, 2, 1.0, 2), (3, 1, 1.0, 1), (10, 1, 3.0, 8)],
)
def test_steps_take_whole_batches(rows: int, processes: int, epochs: float, steps: int) -> None:
    length = length_of(replace(SETTINGS, max_epochs=epochs), rows, processes)
    assert (length.steps, length.iterations) == (steps, steps * 4)


def test_max_steps_wins_and_checkpoints_fall_on_steps() -> None:
    length = length_of(replace(SETTINGS, max_steps=25, log_steps=2), 16, 1)
    assert (length.steps, length.iterations) == (25, 100)
    assert (length.save_interval, length.log_interval) == (BY_TIME, 8)
    assert length_of(replace(SETTINGS, save_steps=2), 16, 1).save_interval == 8


@pytest.mark.parametrize("processes", [1, 2, 3])
@pytest.mark.parametrize("batch_size", [1, 2])
def test_the_rows_of_a_step_do_not_depend_on_the_processes(processes: int, batch_size: int) -> None:
    whole, rows = 12, range(7)

    def steps(count: int) -> list[list[tuple[int, ...]]]:
        dealt = [
            iter(RowOrder(rows, batch_size, 5, rank=rank, world_size=count))
            for rank in range(count)
        ]
        found = []
        for _ in range(4):
            taken = [list(islice(one, whole // count)) for one in dealt]
            found.append(
                sorted(
                    tuple(one[start : start + batch_size])
                    for one in taken
                    for start in range(0, whole // count, batch_size)
                )
            )
        return found

    assert steps(processes) == steps(1)


def test_an_epoch_holds_the_rows_that_trl_trains_in_the_same_steps() -> None:
    theirs = StepSampler([1] * 12, global_batch=4, multiple=4, seed=3)
    ours = iter(RowOrder(range(12), 4, 3, rank=0, world_size=1))
    for epoch in range(2):
        theirs.set_epoch(epoch)
        order = list(theirs)
        for start in range(0, 12, 4):
            assert sorted(islice(ours, 4)) == sorted(order[start : start + 4])


def side(length: int, trained: int) -> Side:
    return Side([1] * length, [False] * (length - trained) + [True] * trained)


def test_packing_cuts_every_max_length_and_leaves_out_the_rest() -> None:
    sequences = packed_sequences([side(6, 3), side(6, 2), side(5, 2)], 8)
    assert [len(sequence) for sequence in sequences] == [8, 8]
    assert sum(map(sum, sequences)) == 6
    # A chunk that fills no sequence is trained as it is.
    assert [len(sequence) for sequence in packed_sequences([side(5, 2)], 8)] == [5]


def test_a_packed_sequence_without_a_trained_token_is_an_error() -> None:
    with pytest.raises(RowsError, match="1 of 2 packed sequences of 8 tokens hold no trained"):
        packed_sequences([side(4, 4), side(12, 0)], 8)

"""The order of rows: whole permutations, steps that keep their rows, length within a step."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentc_backends.trainers.common.rows import StepSampler


@given(
    lengths=st.lists(st.integers(1, 50), min_size=1, max_size=60),
    micro=st.integers(1, 4),
    processes=st.integers(1, 3),
    accumulation=st.integers(1, 3),
    epoch=st.integers(0, 3),
)
def test_every_cut_of_a_step_holds_the_same_rows(
    lengths: list[int], micro: int, processes: int, accumulation: int, epoch: int
) -> None:
    multiple = micro * processes
    batch = multiple * accumulation
    cut = StepSampler(lengths, global_batch=batch, multiple=multiple, seed=3)
    whole = StepSampler(lengths, global_batch=batch, multiple=1, seed=3)
    cut.set_epoch(epoch)
    whole.set_epoch(epoch)
    rows = list(cut)
    assert len(rows) == len(cut)
    assert len(rows) % multiple == 0
    assert rows[: len(lengths)] == list(whole)
    assert rows[len(lengths) :] == list(range(len(lengths), len(rows)))
    assert sorted(whole) == list(range(len(lengths)))
    for start in range(0, len(lengths), batch):
        step = [lengths[row] for row in list(whole)[start : start + batch]]
        assert step == sorted(step, reverse=True)


def test_epochs_and_seeds_differ_and_repeat() -> None:
    def order(seed: int, epoch: int) -> list[int]:
        sampler = StepSampler([1] * 30, global_batch=1, multiple=1, seed=seed)
        sampler.set_epoch(epoch)
        return list(sampler)

    assert order(0, 0) == order(0, 0)
    assert order(0, 0) != order(0, 1)
    assert order(0, 0) != order(1, 0)

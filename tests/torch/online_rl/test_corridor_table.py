"""The critic's update with tables in place of networks, on all that can happen in the corridor: its
errors step by step, against those that were computed apart. Order of updates, twin targets, the
slow copy and the end of episodes each have their part in these numbers, and a fault in one of them
is seen."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest
import torch
from tests.support.corridor_values import DISCOUNT
from tests.torch.online_rl.corridor import EXACT_Q, EXACT_V, Every, every
from torch import nn

from agentc_backends.trainers.online_rl.critic import polyak_update, target_copy
from agentc_backends.trainers.online_rl.losses import Twin, bellman_targets, critic_loss

EXPECTED = {
    1: 5.58755345, 2: 5.50255345, 10: 3.83221128, 50: 1.17477998, 100: 0.51886937,
    200: 0.14688578, 400: 0.01734759, 1000: 0.00002098,
}  # fmt: skip


class Table(nn.Module):  # type: ignore[misc]
    """Q of each room and action, and V of each room, twice; 0 at first, or the twin `second`."""

    def __init__(self, second: float) -> None:
        super().__init__()
        starts = [torch.tensor(start, dtype=torch.float64) for start in (0.0, second)]
        self.qs = nn.ParameterList(start.repeat(4, 3) for start in starts)
        self.vs = nn.ParameterList(start.repeat(4) for start in starts)

    def q(self, rooms: torch.Tensor, actions: torch.Tensor) -> Twin:
        return Twin(*(table[rooms, actions] for table in self.qs))

    def v(self, rooms: torch.Tensor) -> Twin:
        return Twin(*(table[rooms] for table in self.vs))


def trained(
    steps: Iterable[int],
    data: Every,
    of: Callable[[Twin], Twin] = lambda values: values,
    follower: Callable[[nn.Module, nn.Module, float], None] = polyak_update,
    second: float = 0.0,
) -> dict[int, Table]:
    """The table after so many steps. Rates are such that a step is half the way to the mean of its
    targets: a Q has a twelfth of the rows, a V a quarter."""
    table = Table(second)
    target = target_copy(table)  # type: ignore[arg-type]
    optimiser = torch.optim.SGD(
        [{"params": table.qs.parameters(), "lr": 3.0}, {"params": table.vs.parameters(), "lr": 1.0}]
    )
    found = {}
    for step in range(1, max(steps) + 1):
        q_target = bellman_targets(data.rewards, data.done, DISCOUNT, of(target.v(data.following)))
        v_target = of(target.q(data.rooms, data.drawn))
        loss = critic_loss(
            table.q(data.rooms, data.actions), table.v(data.rooms), q_target, v_target
        )
        optimiser.zero_grad()
        loss.total.backward()
        optimiser.step()
        follower(target, table, 0.1)
        if step in set(steps):
            found[step] = target_copy(table)  # type: ignore[arg-type]
    return found  # type: ignore[return-value]


def worst(table: Table) -> float:
    exact = torch.tensor(EXACT_V, dtype=torch.float64)
    return float((table.vs[0] - exact).abs().max())


def test_errors_step_by_step() -> None:
    found = trained(EXPECTED, every())
    assert found[2].vs[0].tolist() == pytest.approx([-0.045, -0.025, -0.025, 0.085])
    for step, error in EXPECTED.items():
        assert worst(found[step]) == pytest.approx(error, abs=2e-8), step
    assert torch.equal(found[1000].vs[0], found[1000].vs[1])
    exact = torch.tensor(EXACT_Q, dtype=torch.float64)
    torch.testing.assert_close(found[1000].qs[0].data, exact, rtol=0, atol=1e-4)


def test_twins_learn_apart() -> None:
    """A twin that is far off at first changes nothing of the other's way."""
    assert worst(trained([10], every(), second=-5.0)[10]) == pytest.approx(EXPECTED[10], abs=2e-8)
    shared = trained([10], every(), second=-5.0, of=lambda v: Twin(v.least(), v.least()))
    assert worst(shared[10]) != pytest.approx(EXPECTED[10], abs=0.1)


def _backwards(target: nn.Module, online: nn.Module, rate: float) -> None:
    polyak_update(online, target, rate)


@pytest.mark.parametrize("fault", ["an end is ignored", "replies are the data's", "the copy leads"])
def test_a_fault_is_seen(fault: str) -> None:
    data = every()
    match fault:
        case "an end is ignored":
            found = trained([1000], replace(data, done=torch.zeros_like(data.done)))
        case "replies are the data's":
            found = trained([1000], replace(data, drawn=data.actions))
        case _:
            found = trained([1000], data, follower=_backwards)
    assert worst(found[1000]) > 0.5

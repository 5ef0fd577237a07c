"""Every loss on numbers that were worked out by hand (and held to six digits), the production
functions themselves."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from agentc_backends.trainers.online_rl.filtered_bc import best_share, filter_warning
from agentc_backends.trainers.online_rl.losses import (
    Twin,
    advantage,
    advantage_weights,
    bellman_targets,
    clipped_loss,
    critic_loss,
    expectile_critic_loss,
    expectile_loss,
    generalised_advantages,
    imitation_loss,
    policy_gradient_loss,
    to_go,
)

Q = Twin(torch.tensor([0.5, -1.0]), torch.tensor([0.2, -0.5]))
V = Twin(torch.tensor([0.1, -0.2]), torch.tensor([0.3, 0.0]))
TARGET_Q = Twin(torch.tensor([0.4, -0.8]), torch.tensor([0.6, -0.9]))
NEXT_V = Twin(torch.tensor([-2.0, 7.0]), torch.tensor([-1.5, 3.0]))
REWARD, DONE = torch.tensor([-1.0, 0.0]), torch.tensor([False, True])
LOG_PROBS = torch.tensor([[0.5, 0.25], [0.1, 0.9]]).log()
MASK = torch.tensor([[1.0, 1.0], [1.0, 0.0]])
BETTER = torch.tensor([0.1, -0.8])


def near(found: Tensor, expected: object) -> None:
    torch.testing.assert_close(found, torch.tensor(expected), rtol=0, atol=1e-6)


def test_targets_are_each_twins_own_and_end_with_the_episode() -> None:
    targets = bellman_targets(REWARD, DONE, 0.95, NEXT_V)
    near(targets.first, [-2.9, 0.0])
    near(targets.second, [-2.425, 0.0])


def test_losses_of_the_critic_and_their_gradients() -> None:
    heads = [value.clone().requires_grad_() for value in (Q.first, Q.second, V.first, V.second)]
    q, v = Twin(heads[0], heads[1]), Twin(heads[2], heads[3])
    loss = critic_loss(q, v, bellman_targets(REWARD, DONE, 0.95, NEXT_V), TARGET_Q)
    near(torch.stack([loss.q1, loss.q2, loss.v1, loss.v2]), [6.28, 3.5703125, 0.225, 0.45])
    near(loss.total, 10.5253125)
    loss.total.backward()
    for head, expected in zip(
        heads, ([3.4, -1.0], [2.625, -0.5], [-0.3, 0.6], [-0.3, 0.9]), strict=True
    ):
        assert head.grad is not None
        near(head.grad, expected)


def test_advantage_is_between_the_smaller_of_each_pair() -> None:
    near(advantage(Q, V), [0.1, -0.8])


def test_policy_gradient_and_its_derivative() -> None:
    log_probs = LOG_PROBS.clone().requires_grad_()
    near((LOG_PROBS * MASK).sum(dim=1), [-2.07944154, -2.30258509])
    loss = policy_gradient_loss(log_probs, MASK, BETTER)
    near(loss, -0.81706196)
    loss.backward()
    assert log_probs.grad is not None
    near(log_probs.grad, [[-0.05, -0.05], [0.4, 0.0]])


def test_expectiles() -> None:
    near(expectile_loss(torch.tensor([1.0, -1.0, 0.0]), 0.9), (0.9 + 0.1) / 3)
    even = expectile_critic_loss(Q, V, Q, TARGET_Q, 0.5)
    near(torch.stack([even.q1, even.q2, even.v1, even.v2]), [0.0, 0.0, 0.225 / 2, 0.45 / 2])


def test_each_head_of_an_expectile_critic_has_its_own_loss_and_gradient() -> None:
    """V misses the data's Q by [0.3, -0.6] and [0.3, -0.9]; too low counts nine times as much."""
    heads = [value.clone().requires_grad_() for value in (Q.first, Q.second, V.first, V.second)]
    q, v = Twin(heads[0], heads[1]), Twin(heads[2], heads[3])
    targets = bellman_targets(REWARD, DONE, 0.95, NEXT_V)
    loss = expectile_critic_loss(q, v, targets, TARGET_Q, 0.9)
    near(torch.stack([loss.q1, loss.q2, loss.v1, loss.v2]), [6.28, 3.5703125, 0.0585, 0.081])
    loss.total.backward()
    for head, expected in zip(
        heads, ([3.4, -1.0], [2.625, -0.5], [-0.27, 0.06], [-0.27, 0.09]), strict=True
    ):
        assert head.grad is not None
        near(head.grad, expected)


def test_weighted_imitation() -> None:
    weights = advantage_weights(BETTER, 1.0, None)
    near(weights, [1.10517092, 0.44932896])
    near(imitation_loss(LOG_PROBS, MASK, weights), 1.66637826)
    near(imitation_loss(LOG_PROBS, MASK), 2.19101334 - 0.00000002)
    near(advantage_weights(BETTER, 0.01, 20.0), [20.0, math.exp(-80)])


def test_clipped_ratios() -> None:
    near(clipped_loss(torch.tensor([1.3, 0.5]), torch.tensor([1.0, -1.0]), 0.2), -0.2)


def test_generalised_advantages() -> None:
    found = generalised_advantages(torch.tensor([0.0, 0.0, 1.0]), torch.full((3,), 0.5), 1.0, 0.5)
    near(found, [0.125, 0.25, 0.5])


@pytest.mark.parametrize(
    ("discount", "rewards", "expected"),
    [
        (0.95, [-1, -1, 0], [-1.95, -1, 0]),
        (0.95, [0, 0, 1], [0.9025, 0.95, 1]),
        (0.9, [10, 0, 100], [91, 90, 100]),
    ],
)
def test_returns_to_go(discount: float, rewards: list[float], expected: list[float]) -> None:
    assert to_go(rewards, discount) == pytest.approx(expected)


def test_a_long_episode_has_no_power_of_the_discount() -> None:
    assert to_go([-1.0] * 20, 0.95)[0] == pytest.approx(-12.83028155)
    assert to_go([-1.0] * 20_000, 0.95)[0] == pytest.approx(-20.0)


@pytest.mark.parametrize(
    ("returns", "cut", "kept"),
    [
        ([-20, -20, -19, -18, -18, -15, -12, -20, -9, -20], -11.7, [8]),
        ([-20] * 9 + [-5], -18.5, [9]),
        ([-20] * 10, -20, list(range(10))),
        ([0, 0.1, 0.5, 0.5, 1], 0.8, [4]),
    ],
)
def test_the_best_tenth(returns: list[float], cut: float, kept: list[int]) -> None:
    least, numbers = best_share(returns, 0.1)
    assert least == pytest.approx(cut)
    assert numbers == kept


def test_a_filter_that_lets_all_through_is_told() -> None:
    """Where nine of ten games are lost, the best tenth is all of them."""
    returns = [0.0] * 95 + [7.0] * 5
    curve: list[dict[str, Any]] = [{"actor": {}}, {}]
    for share in (0.1, 0.05):
        cutoff, best = best_share(returns, share)
        actor = {"cutoff": cutoff, "imitated": float(len(best)), "kept": float(len(returns))}
        curve.append({"actor": actor})
        assert filter_warning(curve[-1:] * 3, share) == (None if share == 0.05 else (
            "in 3 of 3 iterations more than twice the best 10% of episodes were imitated, 100 of "
            "100 in the last of them: N have a return of at least 0. Set `keep_share` below "
            "the share of episodes that reach more"
        ))  # fmt: skip
    assert filter_warning(curve, 0.1) is None, "one of two"
    assert filter_warning([], 0.1) is None
    few = {"actor": {"cutoff": 0.0, "imitated": 9.0, "kept": 9.0}}
    assert filter_warning([few], 0.1) is None, "a tenth of nine is none"

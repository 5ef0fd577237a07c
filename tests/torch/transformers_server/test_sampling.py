"""Sampling: right distribution, right nucleus, and no choice left to rounding."""

from __future__ import annotations

import math

import pytest
import torch

from agentc_backends.transformers_server.sampling import Draw, choose, gumbel, settle


def draws(count: int, temperature: float, top_p: float = 1.0) -> list[Draw]:
    return [Draw(temperature, top_p, (seed, 0), 3) for seed in range(count)]


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_frequencies_are_those_of_the_softmax(temperature: float) -> None:
    logits = torch.tensor([2.0, 1.0, 0.5, 0.0, -1.0, -3.0])
    count = 20000
    chosen = choose(logits.expand(count, -1), draws(count, temperature)).tokens
    share = torch.bincount(torch.tensor(chosen), minlength=6) / count
    expected = torch.softmax(logits / temperature, 0)
    error = torch.sqrt(expected * (1 - expected) / count)
    assert torch.all((share - expected).abs() < 5 * error + 1e-9)


def test_seeds_choices_and_positions_draw_apart() -> None:
    rows = gumbel([((1, 0), 0), ((2, 0), 0), ((1, 1), 0), ((1, 0), 1), ((1, 0), 0)], 5000)
    assert torch.equal(rows[0], rows[4])
    for i in range(4):
        for j in range(i):
            correlation = torch.corrcoef(rows[[i, j]])[0, 1]
            assert abs(correlation) < 5 / math.sqrt(5000)
    # Euler's constant and pi**2 / 6 are the mean and variance of a Gumbel variable.
    assert rows.mean() == pytest.approx(0.5772, abs=0.05)
    assert rows.var() == pytest.approx(math.pi**2 / 6, rel=0.05)


@pytest.mark.parametrize(("top_p", "nucleus"), [(0.3, {0}), (0.6, {0, 1}), (0.95, {0, 1, 2})])
def test_the_nucleus_is_the_smallest_set_of_the_mass(top_p: float, nucleus: set[int]) -> None:
    logits = torch.log(torch.tensor([0.5, 0.3, 0.16, 0.04]))
    chosen = choose(logits.expand(2000, -1), draws(2000, 1.0, top_p))
    assert set(chosen.tokens) == nucleus
    assert not any(chosen.close)


def test_settled_choices_are_the_same_choices() -> None:
    torch.manual_seed(0)
    rows = torch.randn(400, 300) * 3
    for temperature, top_p in ((0.0, 1.0), (1.0, 1.0), (0.7, 0.8), (1.5, 0.3)):
        wanted = draws(len(rows), temperature, top_p)
        chosen = choose(rows, wanted)
        for row, draw, token, close in zip(rows, wanted, chosen.tokens, chosen.close, strict=True):
            assert close or settle(row, draw) == token


def test_what_rounding_could_turn_is_reported() -> None:
    """Every choice that noise of the bounded size does turn had been called close."""
    torch.manual_seed(1)
    # Many tokens of nearly the same probability make close calls frequent.
    rows = torch.randn(3000, 50) * 0.01
    turned = 0
    for temperature, top_p in ((0.0, 1.0), (1.0, 1.0), (1.0, 0.6)):
        wanted = draws(len(rows), temperature, top_p)
        before = choose(rows, wanted)
        noise = (torch.rand_like(rows) * 2 - 1) * 1e-5 * rows.abs().amax(1, keepdim=True)
        for i, draw in enumerate(wanted):
            differs = settle(rows[i] + noise[i], draw) != settle(rows[i], draw)
            turned += differs
            assert before.close[i] or not differs
    assert turned > 0, "the test has not met a single close call"


def test_exact_ties_go_to_the_lower_id() -> None:
    row = torch.tensor([0.0, 3.0, 3.0, 1.0])
    draw = Draw(0.0, 1.0, (0, 0), 0)
    assert choose(row[None], [draw]).close == [True]
    assert settle(row, draw) == 1

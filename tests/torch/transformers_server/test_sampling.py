"""Sampling: right distribution, right nucleus, and no choice left to rounding."""

from __future__ import annotations

import math

import numpy
import pytest
import torch

from agentc_backends.engine.decoding import Draw, choose, choose_token, gumbel


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


def test_noise_does_not_depend_on_the_places_before_it() -> None:
    large = 2**63 + 12345  # rounded by Philox beside a word below 2**63, and replies rest on that
    places = [((large, 1), 7), ((5, large), 0), ((large, large), 2), ((5, 6), 9)]
    together = gumbel(places, 101)
    for row, ((first, second), position) in enumerate(places):
        words = [first, second]
        own = numpy.random.Philox(key=words, counter=[0, 0, position, 0]).random_raw(101)
        uniform = ((own >> numpy.uint64(11)) + 0.5) * 2.0**-53
        expected = torch.from_numpy((-numpy.log(-numpy.log(uniform))).astype(numpy.float32))
        assert torch.equal(together[row], expected)


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
            assert close or choose_token(row, draw) == token


@pytest.mark.parametrize("temperature", [0.0, 0.5, 1.0])
def test_near_ties_that_rounding_could_turn_are_reported(temperature: float) -> None:
    """Two tokens are made to score almost the same; whenever noise of the bounded size turns the
    choice, the choice had been called close."""
    torch.manual_seed(1)
    turned = 0
    for seed in range(600):
        row, draw = torch.randn(40) * 3, Draw(temperature, 1.0, (seed, 0), 3)
        lift = temperature * gumbel([(draw.key, 3)], 40)[0]
        first, second = (row + lift).topk(2).indices.tolist()
        bound = 3e-5 * float(row.abs().max())
        gap = (torch.rand(()) * 8 - 4) * bound
        row[second] = row[first] + lift[first] - lift[second] - gap
        turned += turns(row, draw, bound)
    assert turned > 20, "the test has met too few close calls"


def test_the_edge_of_the_nucleus_is_reported() -> None:
    torch.manual_seed(2)
    turned = 0
    for seed in range(1000):
        row = torch.randn(12)
        mass = torch.softmax(row.double(), 0).sort(descending=True).values.cumsum(0)
        top_p = float(mass[seed % 4] + (torch.rand(()) * 4 - 2) * 3e-5)
        draw = Draw(1.0, top_p, (seed, 0), 3)
        turned += turns(row, draw, 3e-5 * float(row.abs().max()))
    assert turned > 20, "the test has met too few close calls"


def turns(row: torch.Tensor, draw: Draw, bound: float) -> bool:
    """Whether some noise within the bound changes the choice; it must then have been reported."""
    close = choose(row[None], [draw]).close[0]
    tokens = {
        choose_token(row + (torch.randint(0, 2, row.shape) * 2 - 1) * 0.98 * bound, draw)
        for _ in range(8)
    }
    assert close or tokens == {choose_token(row, draw)}
    return len(tokens) > 1


def test_exact_ties_go_to_the_lower_id() -> None:
    row = torch.tensor([0.0, 3.0, 3.0, 1.0])
    draw = Draw(0.0, 1.0, (0, 0), 0)
    assert choose(row[None], [draw]).close == [True]
    assert choose_token(row, draw) == 1


@pytest.mark.parametrize(("temperature", "top_p"), [(0.0, 1.0), (1.0, 1.0), (0.7, 0.6)])
def test_a_mask_draws_as_if_the_model_gave_the_others_nothing(
    temperature: float, top_p: float
) -> None:
    logits = torch.randn(40, 64, generator=torch.Generator().manual_seed(3)) * 4
    mask = torch.zeros(64, dtype=torch.bool)
    mask[5:25] = True
    drawn = draws(40, temperature, top_p)
    held = choose(logits, drawn, dict.fromkeys(range(0, 40, 2), mask))
    free = choose(logits, drawn)
    renormalised = logits.masked_fill(~mask, -1e9)
    for row, draw in enumerate(drawn):
        if row % 2:
            assert held.tokens[row] == free.tokens[row]
        else:
            assert mask[held.tokens[row]]
            if not held.close[row]:
                assert held.tokens[row] == choose_token(renormalised[row], draw)
                assert held.tokens[row] == choose_token(logits[row], draw, mask)

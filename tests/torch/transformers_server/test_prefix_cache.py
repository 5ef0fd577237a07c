"""Buffers of keys and values, found again by what they begin with."""

from __future__ import annotations

import numpy
import pytest
import torch

from agentc_backends.engine import prefix_cache
from agentc_backends.engine.model import Geometry
from agentc_backends.engine.prefix_cache import PrefixCache, Slot, Tokens

GEOMETRY = Geometry(1, 1, 2, 2, torch.float32)
INSTRUCTION = list(range(80))


def cache(tokens: int = 1 << 20) -> PrefixCache:
    return PrefixCache(GEOMETRY, tokens * GEOMETRY.bytes_per_token, 4096)


def prompt(*ids: int) -> Tokens:
    return numpy.array([*INSTRUCTION, *ids], numpy.int32)


def kept(held: PrefixCache, tokens: Tokens) -> Slot:
    """A sequence of these tokens that has ended."""
    slot = held.open(tokens, len(tokens))
    assert slot is not None
    slot.extend(tokens[slot.length :])
    held.close(slot, keep=True)
    return slot


def test_a_conversation_goes_on_in_its_own_buffer() -> None:
    held = cache()
    slots = [kept(held, prompt(*range(100 * n, 100 * n + 40))) for n in range(5)]
    longer = prompt(*range(300, 340), 7, 8, 9)
    slot = held.open(longer, len(longer))
    assert slot is slots[3]
    assert slot.length == 120


def test_what_others_began_with_is_copied_to_the_block() -> None:
    held = cache()
    first = kept(held, prompt(*range(200, 400)))
    first.store.keys[0, 0, :, 0] = torch.arange(first.store.capacity)
    slot = held.open(prompt(*range(200, 210), *range(900, 950)), 200)
    assert slot is not None
    assert slot is not first
    assert slot.length == 90
    assert slot.store.keys[0, 0, :90, 0].tolist() == list(range(90))


def test_blocks_given_up_are_forgotten() -> None:
    """A buffer that another conversation took over is not found by what it held before."""
    held = cache()
    kept(held, prompt(*range(200, 225)))
    slot = held.open(prompt(*range(200, 205), 1, 2), 200)
    assert slot is not None
    slot.extend(prompt(*range(200, 205), 1, 2)[slot.length :])
    assert held.shared_length(prompt(*range(200, 225))) <= 85


def test_the_oldest_goes_first_and_totals_are_kept() -> None:
    held = cache(tokens=4 * 192)
    old, *others = [kept(held, prompt(*range(1000 * n, 1000 * n + 48))) for n in range(4)]
    assert held.held_tokens == sum(each.store.capacity for each in (old, *others))
    kept(held, numpy.arange(5000, 5128, dtype=numpy.int32))
    assert held.held_tokens <= 4 * 192
    assert held.shared_length(prompt(*range(48))) < 128
    assert held.shared_length(prompt(*range(3000, 3048))) == 128


def test_a_prompt_is_compared_with_few_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    held = cache()
    for number in range(500):
        kept(held, prompt(*range(number, number + 20)))
    compared = []
    common = prefix_cache.common_length

    def counted(one: Tokens, other: Tokens) -> int:
        compared.append(1)
        return common(one, other)

    monkeypatch.setattr(prefix_cache, "common_length", counted)
    slot = held.open(prompt(*range(9000, 9040)), 200)
    assert slot is not None
    assert slot.length == 80
    assert len(compared) <= 32

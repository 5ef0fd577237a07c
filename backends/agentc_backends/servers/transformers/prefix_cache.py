"""Keeps keys and values of finished sequences, so that the next turn of a conversation computes
only what is new.

Every sequence owns one contiguous buffer. A finished one stays, idle, until its memory is wanted;
a prompt takes over the idle buffer it extends, or copies the part it shares with any buffer.
Neighbours: `ragged.py` (buffers), `engine.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy
from numpy.typing import NDArray

from agentc_backends.servers.transformers.ragged import Geometry, KeyValues

Tokens = NDArray[numpy.int32]

_GRAIN = 64
"""Capacities are multiples of this, in tokens."""
_WORTH_SHARING = 16
"""Shorter common prefixes are computed again rather than copied."""
_TAIL_GIVEN_UP = 32
"""An idle buffer is taken over, not copied, when at most so many of its tokens are lost."""


@dataclass(slots=True, eq=False)
class Slot:
    """A sequence's buffer. The first `length` entries of `tokens` have keys and values in it."""

    store: KeyValues
    tokens: Tokens
    length: int = 0
    idle: bool = False
    last_used: int = 0

    def extend(self, tokens: Sequence[int] | Tokens) -> None:
        """Note that the pass has computed these tokens."""
        end = self.length + len(tokens)
        self.tokens[self.length : end] = tokens
        self.length = end


class PrefixCache:
    """All buffers, under one budget of bytes. Used by the engine alone."""

    def __init__(self, geometry: Geometry, budget_bytes: int, context: int) -> None:
        self._geometry = geometry
        self._budget = budget_bytes // geometry.bytes_per_token
        self._context = context
        self._slots: list[Slot] = []
        self._clock = 0
        self.reused_tokens = 0

    @property
    def held_tokens(self) -> int:
        """Capacity of all buffers, in tokens."""
        return sum(slot.store.capacity for slot in self._slots)

    def shared_length(self, prompt: Tokens) -> int:
        """How many leading tokens of a prompt some buffer holds now."""
        return max((_common(slot, prompt) for slot in self._slots), default=0)

    def open(self, prompt: Tokens, room: int) -> Slot | None:
        """A slot for a prompt and up to `room` tokens altogether, with as much of the prompt
        computed as can be had (at least its last token is left to compute).

        None when the budget does not allow it before another sequence ends.
        """
        best, shared = self._best(prompt)
        if best is not None and best.idle and best.length - shared <= _TAIL_GIVEN_UP:
            if best.store.capacity >= room:
                best.length, best.idle = shared, False
                self._touch(best)
                self.reused_tokens += shared
                return best
        elif shared < _WORTH_SHARING:
            best, shared = None, 0
        capacity = -(-max(room, min(room * 3 // 2, self._context)) // _GRAIN) * _GRAIN
        if not self._make_room(capacity, spare=best):
            return None
        slot = Slot(
            KeyValues.allocate(self._geometry, capacity), numpy.empty(capacity, numpy.int32)
        )
        if best is not None:
            slot.store.copy_from(best.store, shared)
            slot.extend(best.tokens[:shared])
            if best.idle and best.length - shared <= _TAIL_GIVEN_UP:
                self._slots.remove(best)
        self._slots.append(slot)
        self._touch(slot)
        self.reused_tokens += shared
        return slot

    def close(self, slot: Slot, *, keep: bool) -> None:
        """The sequence has ended; keep what was computed for prompts to come, or drop it."""
        if keep and slot.length >= _WORTH_SHARING:
            slot.idle = True
            self._touch(slot)
        else:
            self._slots.remove(slot)

    def _best(self, prompt: Tokens) -> tuple[Slot | None, int]:
        best: Slot | None = None
        found = (0, False, 0)
        for slot in self._slots:
            shared = min(_common(slot, prompt), len(prompt) - 1)
            # Rather an idle buffer than a busy one, rather one with little to lose.
            merit = (shared, slot.idle, -slot.length)
            if shared > 0 and (best is None or merit > found):
                best, found = slot, merit
        return best, found[0]

    def _make_room(self, capacity: int, spare: Slot | None) -> bool:
        idle = sorted((s for s in self._slots if s.idle and s is not spare), key=_age)
        excess = self.held_tokens + capacity - self._budget
        while excess > 0 and idle:
            oldest = idle.pop(0)
            self._slots.remove(oldest)
            excess -= oldest.store.capacity
        # A single sequence may exceed the budget: refusing it would never end.
        return excess <= 0 or all(slot.idle for slot in self._slots)

    def _touch(self, slot: Slot) -> None:
        self._clock += 1
        slot.last_used = self._clock


def common_length(one: Tokens, other: Tokens) -> int:
    """Length of the longest common prefix."""
    size = min(len(one), len(other))
    differing = numpy.flatnonzero(one[:size] != other[:size])
    return int(differing[0]) if len(differing) else size


def _common(slot: Slot, prompt: Tokens) -> int:
    if slot.length == 0 or slot.tokens[0] != prompt[0]:
        return 0
    return common_length(slot.tokens[: slot.length], prompt)


def _age(slot: Slot) -> int:
    return slot.last_used

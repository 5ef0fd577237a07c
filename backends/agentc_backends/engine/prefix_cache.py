"""Keeps keys and values of finished sequences, so that the next turn of a conversation computes
only what is new.

Every sequence owns one contiguous buffer. A finished one stays, idle, until its memory is wanted;
a prompt takes over the idle buffer it extends, or copies the part it shares with any buffer.
Buffers are found by the blocks of tokens that they begin with, so that a prompt is compared with a
few of thousands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy
from numpy.typing import NDArray

from agentc_backends.engine.model import Geometry, KeyValues

Tokens = NDArray[numpy.int32]

_GRAIN = 64
"""Capacities are multiples of this, in tokens."""
_BLOCK = 16
_WORTH_SHARING = _BLOCK
"""Shorter common prefixes are computed again rather than copied."""
_LOOKED_AT = 32
"""Of buffers that share equally many blocks: thousands may begin with one instruction."""
_TAIL_GIVEN_UP = 32
"""An idle buffer is taken over, not copied, when at most so many of its tokens are lost."""


@dataclass(slots=True, eq=False)
class Slot:
    """A sequence's buffer. The first `length` entries of `tokens` have keys and values in it;
    `grown` is told of more. `blocks` are the cache's own marks of them."""

    store: KeyValues
    tokens: Tokens
    grown: Callable[[Slot], None] | None = None
    length: int = 0
    idle: bool = False
    blocks: list[int] = field(default_factory=list)

    def extend(self, tokens: Sequence[int] | Tokens) -> None:
        """Note that the pass has computed these tokens."""
        end = self.length + len(tokens)
        self.tokens[self.length : end] = tokens
        self.length = end
        if self.grown is not None:
            self.grown(self)


class PrefixCache:
    """All buffers, under one budget of bytes. Used by the engine alone."""

    def __init__(self, geometry: Geometry, budget_bytes: int, context: int) -> None:
        self._geometry = geometry
        self._budget = budget_bytes // geometry.bytes_per_token
        self._context = context
        self._busy: set[Slot] = set()
        self._idle: dict[Slot, None] = {}
        """In the order in which they were put aside."""
        self._holders: dict[int, dict[Slot, None]] = {}
        self.reused_tokens = 0
        self.held_tokens = 0
        """Capacity of all buffers."""

    def shared_length(self, prompt: Tokens) -> int:
        """How many leading tokens of a prompt some buffer holds now; less than a block is none."""
        return max((_common(slot, prompt) for slot in self._like(prompt)), default=0)

    def open(self, prompt: Tokens, room: int) -> Slot | None:
        """A slot for a prompt and up to `room` tokens altogether, with as much of the prompt
        computed as can be had (at least its last token is left to compute).

        None when the budget does not allow it before another sequence ends.
        """
        best, shared = self._best(prompt)
        if best is not None and best.idle and best.length - shared <= _TAIL_GIVEN_UP:
            if best.store.capacity >= room:
                self._cut(best, shared)
                del self._idle[best]
                best.length, best.idle = shared, False
                self._busy.add(best)
                self.reused_tokens += shared
                return best
        elif shared < _WORTH_SHARING:
            best, shared = None, 0
        capacity = -(-max(room, min(room * 3 // 2, self._context)) // _GRAIN) * _GRAIN
        if not self._make_room(capacity, spare=best):
            return None
        store = KeyValues.allocate(self._geometry, capacity)
        slot = Slot(store, numpy.empty(capacity, numpy.int32), self._mark)
        if best is not None:
            slot.store.copy_from(best.store, shared)
            slot.extend(best.tokens[:shared])
            if best.idle and best.length - shared <= _TAIL_GIVEN_UP:
                self._drop(best)
        self._busy.add(slot)
        self.held_tokens += slot.store.capacity
        self.reused_tokens += shared
        return slot

    def close(self, slot: Slot, *, keep: bool) -> None:
        """The sequence has ended; keep what was computed for prompts to come, or drop it."""
        if keep and slot.length >= _WORTH_SHARING:
            self._busy.remove(slot)
            slot.idle = True
            self._idle[slot] = None
        else:
            self._drop(slot)

    def _best(self, prompt: Tokens) -> tuple[Slot | None, int]:
        best: Slot | None = None
        found = (0, False, 0)
        for slot in self._like(prompt):
            shared = min(_common(slot, prompt), len(prompt) - 1)
            # Rather an idle buffer than a busy one, rather one with little to lose.
            merit = (shared, slot.idle, -slot.length)
            if shared > 0 and (best is None or merit > found):
                best, found = slot, merit
        return best, found[0]

    def _like(self, prompt: Tokens) -> Iterable[Slot]:
        """The newest of the buffers that share most whole blocks with a prompt. No other one
        shares a block more: what is lost by not looking at all is part of a block."""
        found: dict[Slot, None] = {}
        mark = 0
        for start in range(0, len(prompt) - _BLOCK + 1, _BLOCK):
            mark = _after(mark, prompt[start : start + _BLOCK])
            holders = self._holders.get(mark)
            if holders is None:
                break
            found = holders
        return islice(reversed(found), _LOOKED_AT)

    def _mark(self, slot: Slot) -> None:
        """Note the blocks that a buffer has filled since."""
        for block in range(len(slot.blocks), slot.length // _BLOCK):
            before = slot.blocks[-1] if slot.blocks else 0
            mark = _after(before, slot.tokens[block * _BLOCK : (block + 1) * _BLOCK])
            slot.blocks.append(mark)
            self._holders.setdefault(mark, {})[slot] = None

    def _cut(self, slot: Slot, length: int) -> None:
        """Forget the blocks beyond a length."""
        while len(slot.blocks) > length // _BLOCK:
            mark = slot.blocks.pop()
            holders = self._holders[mark]
            del holders[slot]
            if not holders:
                del self._holders[mark]

    def _drop(self, slot: Slot) -> None:
        self._cut(slot, 0)
        self._busy.discard(slot)
        self._idle.pop(slot, None)
        self.held_tokens -= slot.store.capacity

    def _make_room(self, capacity: int, spare: Slot | None) -> bool:
        excess = self.held_tokens + capacity - self._budget
        while excess > 0:
            oldest = next((slot for slot in self._idle if slot is not spare), None)
            if oldest is None:
                # A single sequence may exceed the budget: refusing it would never end.
                return not self._busy
            excess -= oldest.store.capacity
            self._drop(oldest)
        return True


def _after(mark: int, block: Tokens) -> int:
    """The mark of a block behind those before: two that are alike have almost surely the same
    tokens from the start, and are compared before anything rests on it."""
    return hash((mark, block.tobytes()))


def common_length(one: Tokens, other: Tokens) -> int:
    """Length of the longest common prefix."""
    size = min(len(one), len(other))
    differing = numpy.flatnonzero(one[:size] != other[:size])
    return int(differing[0]) if len(differing) else size


def _common(slot: Slot, prompt: Tokens) -> int:
    if slot.length == 0 or slot.tokens[0] != prompt[0]:
        return 0
    return common_length(slot.tokens[: slot.length], prompt)

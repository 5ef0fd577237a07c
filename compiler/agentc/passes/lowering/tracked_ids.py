"""TrackedIds: ids of a stage's inputs that note whether a backend looked at them.

Rounds and cells of a sweep hold equal stages under other names. Where a lowering hands the ids of
its inputs on without a look, what it drafted holds for all of them, with their own ids in the same
places, and it is asked once (`trial.py`). Counting ids is no look: equal stages have as many.
Neighbour: `drafts.py`, which looks at all else that drafts hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, SupportsIndex

from agentc.backend_api import JobDraft
from agentc.ir.module import Stage


@dataclass(slots=True)
class Attention:
    """Whether anybody looked at any of a stage's ids."""

    looked: bool = False


class TrackedIds(tuple[str, ...]):
    """The ids of one role, in order."""

    role: str
    attention: Attention

    def __new__(cls, role: str, ids: tuple[str, ...], attention: Attention) -> TrackedIds:
        self = super().__new__(cls, ids)
        self.role, self.attention = role, attention
        return self

    def _seen(self) -> tuple[str, ...]:
        self.attention.looked = True
        return tuple.__getitem__(self, slice(None))

    def __iter__(self) -> Iterator[str]:
        return iter(self._seen())

    def __getitem__(self, at: SupportsIndex | slice) -> Any:
        return self._seen()[at]

    def __contains__(self, name: object) -> bool:
        return name in self._seen()

    def __add__(self, other: Any) -> Any:
        return self._seen() + tuple(other)

    def __eq__(self, other: object) -> bool:
        return self._seen() == other

    def __ne__(self, other: object) -> bool:
        return self._seen() != other

    def __hash__(self) -> int:
        return hash(self._seen())

    def __lt__(self, other: tuple[str, ...]) -> bool:
        return self._seen() < other

    def __le__(self, other: tuple[str, ...]) -> bool:
        return self._seen() <= other

    def __gt__(self, other: tuple[str, ...]) -> bool:
        return self._seen() > other

    def __ge__(self, other: tuple[str, ...]) -> bool:
        return self._seen() >= other

    def __mul__(self, times: SupportsIndex) -> tuple[str, ...]:
        return self._seen() * times

    def index(self, name: str, *between: SupportsIndex) -> int:
        return self._seen().index(name, *between)

    def count(self, name: str) -> int:
        return self._seen().count(name)

    def __repr__(self) -> str:
        return repr(self._seen())

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (list(self._seen()),)


def tracked(inputs: Mapping[str, tuple[str, ...]]) -> tuple[dict[str, TrackedIds], Attention]:
    """The inputs of a stage for its backend to hand on, and what notes a look at them."""
    attention = Attention()
    return {role: TrackedIds(role, ids, attention) for role, ids in inputs.items()}, attention


def inputs_of(draft: JobDraft, stage: Stage) -> dict[str, tuple[str, ...]]:
    """The inputs of a draft, with the ids of a stage where those of an equal one were handed on."""
    return {
        role: stage.inputs[ids.role] if isinstance(ids, TrackedIds) else ids
        for role, ids in draft.inputs.items()
    }

"""Numbers of a client's requests that act in a session: one whose reply was lost can be sent again.

Sessions count from 1, and servers that know this say so in the reply that opens a session.
Neighbour: `environment.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_NEXT = 0
"""For the server: whatever number is next."""


class Numbers:
    """The last number that acted, by session; None where an answer never came."""

    def __init__(self) -> None:
        self._last: dict[int, int | None] = {}

    def __contains__(self, session: int) -> bool:
        return session in self._last

    def begin(self, session: int, answer: Mapping[str, Any]) -> bool:
        """Whether the server counts requests of this new session."""
        last = answer.get("seq")
        if isinstance(last, int):
            self._last[session] = last
        return session in self._last

    def next(self, session: int, *, starts_over: bool = False) -> int | None:
        """The number of a request; None for one that cannot be numbered. Where it is not known
        what came of the last one, only a request that `starts_over` can."""
        last = self._last.get(session)
        if last is not None:
            return last + 1
        return _NEXT if starts_over and session in self._last else None

    def note(self, session: int, answer: object) -> None:
        """An answer came, under the number that it carries."""
        if session in self._last and isinstance(answer, Mapping) and "seq" in answer:
            self._last[session] = int(answer["seq"])

    def lose(self, session: int) -> None:
        """No answer came, or one that does not say whether the request counted."""
        if session in self._last:
            self._last[session] = None

    def forget(self, session: int) -> None:
        self._last.pop(session, None)

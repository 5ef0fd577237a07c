"""Numbers for the requests that change a session, so that one can be sent twice and act once.

A client counts its resets, steps and restores of a session from 1. The last answer is kept: a
request with its number gets it again, the next number acts, and any other is refused.
Neighbour: `sessions.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from agentc_backends.environments.server.refusals import RequestError

Reply: TypeAlias = Mapping[str, Any]
UNCOUNTED = None
"""The number of a request that gives none: it acts, and counts for nothing."""
NEXT = 0
"""Asks for whatever number is next: for a client that does not know which of its requests acted,
and starts the episode over."""


@dataclass(slots=True)
class RequestSequence:
    """The numbered requests of one session; its user lets one request in at a time."""

    last: int = 0
    _asked: object = None
    _answer: Reply = field(default_factory=dict)
    _raised: Exception | None = None

    def carry_out(self, number: int | None, asked: object, act: Callable[[], Reply]) -> Reply:
        """What `act` answers, now or when it was carried out under this number.

        `asked` tells requests apart: one that bears another's number is refused. A RequestError
        of `act` says that nothing was done, so it is not counted.
        """
        if number is UNCOUNTED:
            return act()
        if number == self.last and number != NEXT:
            if asked != self._asked:
                message = f"seq {number} was another request; this session expects {number + 1}"
                raise RequestError(409, {"error": message, "expected": number + 1})
            if self._raised is not None:
                raise self._raised
            return self._answer
        expected = self.last + 1
        if number not in (NEXT, expected):
            message = f"seq is {number}; this session expects {expected}"
            raise RequestError(409, {"error": message, "expected": expected})
        try:
            answer, raised = {**act(), "seq": expected}, None
        except RequestError:
            raise
        except Exception as error:
            answer, raised = {}, error
        self.last, self._asked, self._answer, self._raised = expected, asked, answer, raised
        if raised is not None:
            raise raised
        return answer

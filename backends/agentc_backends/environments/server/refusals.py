"""Why a request is not served, in the shapes of AgentGym's servers, and how rewards are written.

Knows no HTTP library, so that episodes can be had without a server. Neighbours: `wire.py`,
`sessions.py`, `sequence.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class RequestError(Exception):
    """The request cannot be served; `payload` is the reply's JSON."""

    def __init__(self, status: int, payload: Mapping[str, Any]) -> None:
        super().__init__(status, payload)
        self.status = status
        self.payload = payload
        self.headers: Mapping[str, str] = {}


class BusyError(RequestError):
    """As much is in hand as the server takes: it asks to be tried again in a while. `finished`
    counts what is over of that which is waited for: as long as it rises, waiting is worth while."""

    def __init__(self, message: str, finished: int) -> None:
        super().__init__(503, {"error": message, "finished": finished})
        self.message = message
        self.headers = {"Retry-After": "1"}


def invalid(kind: str, place: tuple[str, ...], message: str, value: object) -> RequestError:
    """A 422 in the shape that FastAPI gives it."""
    detail = {"type": kind, "loc": list(place), "msg": message, "input": value}
    return RequestError(422, {"detail": [detail]})


def number(value: float) -> int | float:
    """A reward as AgentGym writes it: 0 and 1, not 0.0 and 1.0."""
    return int(value) if value == int(value) else value

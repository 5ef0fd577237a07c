"""What a server says to `/privileged`, read so that no message of an exception has a word of it.

The texts are for a file of their owner alone; a message goes to logs and terminals. Neighbour:
`environment.py`, which asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentc_backends.clients.errors import (
    BadRequestError,
    EnvironmentServerError,
    InfrastructureError,
)

HIDDEN_TEXTS = "/privileged"
_FIELDS = ("task_id", "text", "media")
_REFUSALS = {
    401: "the token is not the server's",
    403: "the server was started without --privileged: what it hides stays hidden",
    404: "a task is not of the environment, with these settings",
    501: "the environment has no hidden texts (the capability `privileged`)",
}
"""In our words: a server's own may quote what it was to tell."""


def refused(error: BadRequestError) -> BadRequestError:
    """The refusal by its status."""
    meaning = _REFUSALS.get(error.status, "the server refuses")
    return BadRequestError(f"{HIDDEN_TEXTS}: {error.status} {meaning}", status=error.status)


def texts_told(answer: Any, task_ids: Sequence[str]) -> list[dict[str, str]]:
    """One text of each task asked for, in order. Raises EnvironmentServerError where the server
    reports an error of its own, InfrastructureError where the reply is none of the contract's."""
    if isinstance(answer, dict) and "error" in answer:
        raise EnvironmentServerError(
            f"{HIDDEN_TEXTS}: the environment reports an error of its own, which may quote what it "
            "hides and is kept back"
        )
    texts = answer.get("texts") if isinstance(answer, dict) else None
    if not isinstance(texts, list) or len(texts) != len(task_ids):
        raise InfrastructureError(
            f"{HIDDEN_TEXTS}: expected `texts`, one for each of {len(task_ids)} tasks"
        )
    return [_told(each, place) for place, each in enumerate(texts)]


def _told(each: Any, place: int) -> dict[str, str]:
    given = each if isinstance(each, dict) else {}
    found = {name: given[name] for name in _FIELDS if isinstance(given.get(name), str)}
    if len(found) < len(_FIELDS):
        raise InfrastructureError(
            f"{HIDDEN_TEXTS}: item {place} of `texts` lacks one of {', '.join(_FIELDS)}, as text"
        )
    return found

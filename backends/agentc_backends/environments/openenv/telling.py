"""Reads a server's replies: the observation as text, the step's reward, whether it is the end.

One field is told as it is, several as a line each; what is no text is JSON.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

UNTOLD = ("reward", "done", "metadata")
"""Fields of an observation that are no text for agents unless a spec names them."""


class ReplyError(Exception):
    """The server answered what the protocol, or the spec, does not allow."""


@dataclass(frozen=True, slots=True)
class Observed:
    """What came of a reset or a step; the reward is in the server's own units."""

    text: str
    reward: float
    done: bool


def read_observed(data: Mapping[str, Any], fields: Sequence[str]) -> Observed:
    """The `data` of an observation message; `fields` are those to be told, else all that are given
    but UNTOLD. Raises ReplyError."""
    observation, reward, done = data.get("observation"), data.get("reward"), data.get("done")
    if not isinstance(observation, Mapping):
        raise ReplyError(f"the reply has no observation: {json.dumps(data)[:200]}")
    if reward is None:
        reward = 0.0
    if not isinstance(reward, (int, float)) or not math.isfinite(reward):
        raise ReplyError(f"the reward of a step is {reward!r}")
    if not isinstance(done, bool):
        raise ReplyError(f"`done` is {done!r}")
    return Observed(_told(observation, fields), float(reward), done)


def _told(observation: Mapping[str, Any], fields: Sequence[str]) -> str:
    absent = [name for name in fields if name not in observation]
    if absent:
        has = ", ".join(f"`{name}`" for name in observation) or "none"
        raise ReplyError(f"an observation has no field `{absent[0]}`; its fields: {has}")
    names = fields or [
        name for name, value in observation.items() if name not in UNTOLD and value is not None
    ]
    if len(names) == 1:
        return _plain(observation[names[0]])
    return "\n".join(f"{name}: {_plain(observation[name])}" for name in names)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

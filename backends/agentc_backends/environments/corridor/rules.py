"""The corridor's rules: four rooms in a row, three actions, and a chance that is a function.

`environment.py` plays by them, `exact.py` computes values from them, so both mean one world.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

ROOMS = ("the hall", "a dark kitchen", "old cellar stairs going down", "garden gate")
"""What an agent reads in each room, from left to right; an episode starts in the first. They differ
in every word, so that a small encoder tells them apart."""
ACTIONS = ("left", "right", "look")
GOES_ON = 0.8
"""How likely `right` leads on; else one stays."""
STEP, GATE, STREET = -1.0, 10.0, -5.0
"""Rewards: of every action, but of the one that leaves by the gate or into the street."""
IN_THE_GARDEN, IN_THE_STREET = "out in the garden", "out in the street"
_FIRST, _LAST = 0, len(ROOMS) - 1


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of an action: what is seen then, its reward, and the room, None where the episode is over."""

    seen: str
    reward: float
    room: int | None


def outcome(room: int, action: str, *, goes_on: bool) -> Outcome:
    """What an action leads to in a room, 0 to 3. `goes_on` says whether `right` leads on; the other
    actions heed no chance, and whatever is none of ACTIONS does what `look` does."""
    if action == "right" and goes_on:
        return Outcome(IN_THE_GARDEN, GATE, None) if room == _LAST else _inside(room + 1)
    if action == "left":
        return Outcome(IN_THE_STREET, STREET, None) if room == _FIRST else _inside(room - 1)
    return _inside(room)


def goes_on(task_id: str, seed: int, step: int) -> bool:
    """Whether `right` leads on as the action number `step`, from 0, of an episode.

    A function of these three alone: what was done before changes nothing, and no generator is kept,
    so a copy, a replay and another process tell the same.
    """
    digest = hashlib.sha256(f"corridor/1/{task_id}/{seed}/{step}".encode()).digest()
    return int.from_bytes(digest[:8], "big") < GOES_ON * 2**64


def _inside(room: int) -> Outcome:
    return Outcome(ROOMS[room], STEP, room)

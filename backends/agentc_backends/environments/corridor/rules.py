"""The corridor's rules: four rooms in a row, three actions, one more where a spec asks for it, and
a chance that is a function.

`environment.py` plays by them; tests compute exact values from them.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

ROOMS = ("the hall", "a dark kitchen", "old cellar stairs going down", "garden gate")
"""What an agent reads in each room, from left to right; an episode starts in the first. They differ
in every word, so that a small encoder tells them apart."""
ACTIONS = ("left", "right", "look")
GAMBLE = "gamble"
"""The fourth action, which there is only where a spec asks for it: it ends the episode."""
GOES_ON = 0.8
"""How likely `right` leads on; else one stays."""
STEP, GATE, STREET = -1.0, 10.0, -5.0
"""Rewards: of every action, but of the one that leaves by the gate or into the street."""
WINS = 0.1
"""How likely a gamble is won."""
WON, LOST = 20.0, -5.0
"""Rewards of a gamble: -2.5 on average, which is worse than `right` in every room, while one that
is won earns more than any way through the gate."""
IN_THE_GARDEN, IN_THE_STREET = "out in the garden", "out in the street"
OUT_RICH, OUT_POOR = "out with a purse of gold", "out with nothing left"
_FIRST, _LAST = 0, len(ROOMS) - 1


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of an action: what is seen then, its reward, and the room, None where the episode is over."""

    seen: str
    reward: float
    room: int | None


def actions_of(gamble: bool) -> tuple[str, ...]:
    """What may be done, in the order of all tables."""
    return (*ACTIONS, GAMBLE) if gamble else ACTIONS


def outcome(room: int, action: str, *, goes_on: bool, wins: bool | None = None) -> Outcome:
    """What an action leads to in a room, 0 to 3. `goes_on` says whether `right` leads on, `wins`
    whether a gamble is won (None: there is none here); the other actions heed no chance, and
    whatever is no action does what `look` does."""
    if action == GAMBLE and wins is not None:
        return Outcome(OUT_RICH, WON, None) if wins else Outcome(OUT_POOR, LOST, None)
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
    return _happens(f"corridor/1/{task_id}/{seed}/{step}", GOES_ON)


def wins(task_id: str, seed: int, step: int) -> bool:
    """Whether a gamble is won as the action number `step`, from 0, of an episode: a function as
    `goes_on` is, of which it says nothing."""
    return _happens(f"corridor/1/{GAMBLE}/{task_id}/{seed}/{step}", WINS)


def _happens(name: str, likely: float) -> bool:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") < likely * 2**64


def _inside(room: int) -> Outcome:
    return Outcome(ROOMS[room], STEP, room)

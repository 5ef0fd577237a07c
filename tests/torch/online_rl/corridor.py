"""The corridor as tables: four rooms, three actions, exact values. The same world is
`env.corridor`, whose tests hold these values to its own."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

ROOMS = ("the hall", "a dark kitchen", "old cellar stairs going down", "garden gate")
ACTIONS = ("left", "right", "look")
DISCOUNT = 0.9
POLICY = (0.2, 0.5, 0.3)
EXACT_V = (-4.01756198, -2.14233240, 0.97796783, 5.58755345)
EXACT_Q = (
    (-5.0, -3.26564049, -4.61580578),
    (-4.61580578, -0.68148300, -2.92809916),
    (-2.92809916, 3.19907269, -0.11982895),
    (-0.11982895, 8.80575962, 4.02879811),
)
EXPECTILE_V = (0.57431206, 3.06638368, 5.63056370, 8.64003624)
"""Of 0.9, on actions drawn evenly."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """`following` is None where the episode ends."""

    chance: float
    reward: float
    following: int | None


def outcomes(room: int, action: int) -> tuple[Outcome, ...]:
    """What an action may lead to."""
    match ACTIONS[action]:
        case "left":
            left = Outcome(1.0, -5.0, None) if room == 0 else Outcome(1.0, -1.0, room - 1)
            return (left,)
        case "right":
            on = Outcome(0.8, 10.0, None) if room == 3 else Outcome(0.8, -1.0, room + 1)
            return on, Outcome(0.2, -1.0, room)
        case _:
            return (Outcome(1.0, -1.0, room),)


@dataclass(frozen=True, slots=True)
class Every:
    """Each combination of room, action, outcome and reply of the policy, as often as its chance
    has it (rooms and actions evenly): means over these rows are expectations."""

    rooms: Tensor
    actions: Tensor
    rewards: Tensor
    done: Tensor
    following: Tensor
    drawn: Tensor


def every() -> Every:
    """600 rows: rewards in float64, rooms that follow are 0 where none does."""
    rows = [
        (room, action, outcome.reward, outcome.following is None, outcome.following or 0, drawn)
        for room in range(len(ROOMS))
        for action in range(len(ACTIONS))
        for outcome in outcomes(room, action)
        for _ in range(round(5 * outcome.chance))
        for drawn, chance in enumerate(POLICY)
        for _ in range(round(10 * chance))
    ]
    rooms, actions, rewards, done, following, drawn = zip(*rows, strict=True)
    return Every(
        rooms=torch.tensor(rooms),
        actions=torch.tensor(actions),
        rewards=torch.tensor(rewards, dtype=torch.float64),
        done=torch.tensor(done),
        following=torch.tensor(following),
        drawn=torch.tensor(drawn),
    )

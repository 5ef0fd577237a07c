"""`env.corridor` as rows of data, and its exact values as they were computed apart."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from agentc_backends.environments.corridor.rules import ACTIONS, GOES_ON, ROOMS, outcome

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
class Likely:
    """`following` is None where the episode ends."""

    chance: float
    reward: float
    following: int | None


def outcomes(room: int, action: int) -> tuple[Likely, ...]:
    """What an action may lead to, by the environment's own rules."""
    word = ACTIONS[action]
    on, stays = (outcome(room, word, goes_on=goes_on) for goes_on in (True, False))
    if word != "right":
        return (Likely(1.0, on.reward, on.room),)
    return (
        Likely(GOES_ON, on.reward, on.room),
        Likely(1 - GOES_ON, stays.reward, stays.room),
    )


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
        (room, action, likely.reward, likely.following is None, likely.following or 0, drawn)
        for room in range(len(ROOMS))
        for action in range(len(ACTIONS))
        for likely in outcomes(room, action)
        for _ in range(round(5 * likely.chance))
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

"""Exact values of the corridor: of a policy, of expectiles over data, and of the best policy.

Pure functions of tables of four rows (`rules.ROOMS`) and three columns (`rules.ACTIONS`) or, of the
corridor with a gamble, four, in plain Python, for the light software stack has no numpy. The
world is ours: ArCHer (Zhou et al., ICML 2024), whose critics are checked against these values, has
none like it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from agentc_backends.environments.corridor.rules import (
    ACTIONS,
    GAMBLE,
    GOES_ON,
    ROOMS,
    WINS,
    Outcome,
    actions_of,
    outcome,
)

Table: TypeAlias = Sequence[Sequence[float]]
"""Four rows of three numbers, or of four with a gamble; of a policy or of data: probabilities, each
row summing to 1."""
DISCOUNT = 0.9
UNIFORM: Table = ((1 / 3, 1 / 3, 1 / 3),) * 4
_CONVERGED = 1e-14
"""Of the largest value: some of the steps between neighbouring floats."""


@dataclass(frozen=True, slots=True)
class ExactValues:
    """Expected discounted sums of rewards: `v[room]`, and `q[room][action]` of an action and what
    follows it."""

    v: tuple[float, ...]
    q: tuple[tuple[float, ...], ...]


def policy_values(policy: Table, discount: float = DISCOUNT) -> ExactValues:
    """V and Q of a policy that draws each action by its row of probabilities.

    Bellman's equations V = r + discount P V (any textbook; Sutton and Barto, 2018, section 4.1),
    solved as the four linear equations that they are. Raises ValueError for what is no table of
    probabilities, and for a discount outside of 0 to below 1.
    """
    actions = _check(policy, discount)
    rooms = range(len(ROOMS))
    matrix = [[float(row == column) for column in rooms] for row in rooms]
    rewards = [0.0 for _ in rooms]
    for room in rooms:
        for chosen, action in zip(policy[room], actions, strict=True):
            for likely, after in _outcomes(room, action):
                rewards[room] += chosen * likely * after.reward
                if after.room is not None:
                    matrix[room][after.room] -= discount * chosen * likely
    return _values(solved(matrix, rewards), discount, actions)


def expectile_values(tau: float, data: Table = UNIFORM, discount: float = DISCOUNT) -> ExactValues:
    """V and Q where V of a room is the tau-expectile of its Q over the data's actions, which is
    what a critic with an expectile loss learns (IQL: Kostrikov et al., ICLR 2022, section 4.2; in
    ArCHer's offline variant). At tau 0.5 they are `policy_values` of the data's policy; towards 1
    they come near `optimal_values` of the actions that the data has.

    By iteration: the expectile of values that differ by at most d differs by at most d, so each
    round brings V nearer by the factor of the discount. Raises ValueError as `policy_values` does,
    and for a tau outside of 0 to 1.
    """
    actions = _check(data, discount)
    return _iterated(lambda room, row: expectile(row, data[room], tau), discount, actions)


def optimal_values(discount: float = DISCOUNT, *, gamble: bool = False) -> ExactValues:
    """V and Q of the best policy, by value iteration (Sutton and Barto, 2018, section 4.4). Raises
    ValueError for a discount outside of 0 to below 1."""
    _check(UNIFORM, discount)
    return _iterated(lambda _, row: max(row), discount, actions_of(gamble))


def expectile(values: Sequence[float], weights: Sequence[float], tau: float) -> float:
    """The m at which tau times the weighted sum of (x - m) over values x above m is (1 - tau) times
    that of (m - x) over those below (Newey and Powell, Econometrica 1987). Weights need not sum to
    1. Raises ValueError for a tau outside of 0 to 1, or where no value has a weight."""
    if not 0 < tau < 1:
        raise ValueError(f"tau is {tau}; an expectile has one between 0 and 1")
    pairs = sorted((x, w) for x, w in zip(values, weights, strict=True) if w > 0)
    if not pairs:
        raise ValueError("no value has a weight: there is nothing to take the expectile of")
    below = 0
    while True:
        # If so many values lay below m, m would be their mean under these weights.
        shares = [w * (tau if place >= below else 1 - tau) for place, (_, w) in enumerate(pairs)]
        products = (share * x for share, (x, _) in zip(shares, pairs, strict=True))
        middle = math.fsum(products) / math.fsum(shares)
        if below + 1 == len(pairs) or middle <= pairs[below][0]:
            return middle
        below += 1


def solved(matrix: Table, right: Sequence[float]) -> tuple[float, ...]:
    """x of matrix x = right, by Gaussian elimination with partial pivoting. Raises ValueError for a
    singular matrix."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    size = len(rows)
    for place in range(size):
        pivot = max(range(place, size), key=lambda row: abs(rows[row][place]))
        rows[place], rows[pivot] = rows[pivot], rows[place]
        if rows[place][place] == 0:
            raise ValueError("the equations have no single solution")
        for row in range(place + 1, size):
            factor = rows[row][place] / rows[place][place]
            rows[row] = [a - factor * b for a, b in zip(rows[row], rows[place], strict=True)]
    found = [0.0] * size
    for place in reversed(range(size)):
        known = math.fsum(rows[place][later] * found[later] for later in range(place + 1, size))
        found[place] = (rows[place][size] - known) / rows[place][place]
    return tuple(found)


def _iterated(
    value_of: Callable[[int, Sequence[float]], float], discount: float, actions: Sequence[str]
) -> ExactValues:
    """The V that `value_of` (a room, its Q) makes of its own Q."""
    v = tuple(0.0 for _ in ROOMS)
    while True:
        after = tuple(
            value_of(room, row) for room, row in enumerate(_values(v, discount, actions).q)
        )
        moved = max(abs(one - other) for one, other in zip(v, after, strict=True))
        v = after
        if moved <= _CONVERGED * max(1.0, *map(abs, v)):
            return _values(v, discount, actions)


def _values(v: tuple[float, ...], discount: float, actions: Sequence[str]) -> ExactValues:
    """V with the Q that follows from it."""
    q = tuple(tuple(_worth(room, action, v, discount) for action in actions)
              for room in range(len(ROOMS)))  # fmt: skip
    return ExactValues(v, q)


def _worth(room: int, action: str, v: Sequence[float], discount: float) -> float:
    return math.fsum(
        likely * (after.reward + (0.0 if after.room is None else discount * v[after.room]))
        for likely, after in _outcomes(room, action)
    )


def _outcomes(room: int, action: str) -> tuple[tuple[float, Outcome], ...]:
    """What an action may lead to, each with its probability."""
    if action == GAMBLE:
        won, lost = (outcome(room, action, goes_on=False, wins=each) for each in (True, False))
        return ((WINS, won), (1 - WINS, lost))
    on, stays = (outcome(room, action, goes_on=goes) for goes in (True, False))
    return ((GOES_ON, on), (1 - GOES_ON, stays))


def _check(table: Table, discount: float) -> tuple[str, ...]:
    """The actions that its columns are of."""
    if not 0 <= discount < 1:
        raise ValueError(f"the discount is {discount}; values need one from 0 to below 1")
    shape = [len(row) for row in table]
    columns = len(table[0]) if table else 0
    if columns not in (len(ACTIONS), len(ACTIONS) + 1) or shape != [columns] * len(ROOMS):
        raise ValueError(f"rows of {shape} numbers; expected are 4 rows of 3, or of 4 with gamble")
    for room, row in zip(ROOMS, table, strict=True):
        if min(row) < 0 or not math.isclose(math.fsum(row), 1, abs_tol=1e-9):
            raise ValueError(f"the row of {room!r} holds no probabilities that sum to 1: {row}")
    return actions_of(gamble=columns > len(ACTIONS))

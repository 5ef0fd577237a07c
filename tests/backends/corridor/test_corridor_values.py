"""The corridor's exact values: the table that was computed apart, and episodes that are played."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Sequence

import pytest
from tests.support.corridor_values import (
    DISCOUNT,
    UNIFORM,
    ExactValues,
    expectile,
    expectile_values,
    optimal_values,
    policy_values,
    solved,
)

from agentc_backends.environments.corridor.environment import CorridorEnvironment, plan
from agentc_backends.environments.corridor.rules import (
    ACTIONS,
    GAMBLE,
    GOES_ON,
    ROOMS,
    WINS,
    outcome,
)
from agentc_backends.environments.corridor.settings import CorridorSettings

MIXED = ((0.2, 0.5, 0.3),) * 4
Rows = dict[int, tuple[float, float, float]]


@pytest.mark.parametrize(
    ("found", "v", "q"),
    [
        (
            policy_values(MIXED),
            (-4.01756198, -2.14233240, 0.97796783, 5.58755345),
            {
                0: (-5, -3.26564049, -4.61580578),
                1: (-4.61580578, -0.68148300, -2.92809916),
                2: (-2.92809916, 3.19907269, -0.11982895),
                3: (-0.11982895, 8.80575962, 4.02879811),
            },
        ),
        (
            policy_values(UNIFORM),
            (-5.77386544, -5.67475228, -3.74867428, 1.26364226),
            {
                0: (-5, -6.12511742, -6.19647889),
                3: (-4.37380685, 8.02745561, 0.13727804),
            },
        ),
        (
            expectile_values(0.9),
            (0.57431206, 3.06638368, 5.63056370, 8.64003624),
            {
                0: (-5, 1.31117242, -0.48311915),
                3: (4.06750733, 9.35520652, 6.77603262),
            },
        ),
        (expectile_values(0.99), (2.94283894, 4.87004472, 7.00138502, 9.43730246), {}),
        (
            optimal_values(),
            (3.20876040, 5.04331046, 7.13265913, 9.51219512),
            {
                0: (-5, 3.20876040, 1.88788436),
                3: (5.41939322, 9.51219512, 7.56097561),
            },
        ),
    ],
    ids=["mixed", "uniform", "expectile .9", "expectile .99", "optimal"],
)
def test_the_table(found: ExactValues, v: Sequence[float], q: Rows) -> None:
    assert found.v == pytest.approx(v, abs=1e-8, rel=0)
    for room, row in q.items():
        assert found.q[room] == pytest.approx(row, abs=1e-8, rel=0)


def test_the_middle_expectile_is_the_policys_and_the_highest_near_the_best() -> None:
    for data in (UNIFORM, MIXED):
        middle = expectile_values(0.5, data)
        assert middle.v == pytest.approx(policy_values(data).v, abs=1e-10)
    best = optimal_values().v
    assert expectile_values(1 - 1e-9).v == pytest.approx(best, abs=1e-6)
    # The best of the actions that the data has: who never goes right leaves by the street.
    shy = expectile_values(1 - 1e-9, ((0.5, 0.0, 0.5),) * 4)
    assert shy.v == pytest.approx((-5, -5.5, -5.95, -6.355), abs=1e-6)


def test_values_obey_bellmans_equations_at_other_discounts() -> None:
    for discount in (0.0, 0.5, 0.999):
        best = optimal_values(discount)
        always_right = policy_values(((0.0, 1.0, 0.0),) * 4, discount)
        if discount:
            assert best.v == pytest.approx(always_right.v, abs=1e-9)
        assert best.v == tuple(pytest.approx(max(row), abs=1e-9) for row in best.q)
    assert policy_values(MIXED, 0.0).v == pytest.approx((-1.8, -1, -1, 0.5 * 7.8 - 0.5))


def test_an_expectile_balances_what_lies_above_and_below() -> None:
    chance = random.Random("expectiles")
    for _ in range(50):
        count = chance.randrange(1, 6)
        values = [chance.choice((-2.0, 0.5, chance.gauss(0, 3))) for _ in range(count)]
        weights = [chance.random() for _ in range(count)]
        tau = chance.uniform(0.01, 0.99)
        m = expectile(values, weights, tau)
        above = sum(w * (x - m) for x, w in zip(values, weights, strict=True) if x > m)
        below = sum(w * (m - x) for x, w in zip(values, weights, strict=True) if x < m)
        assert tau * above == pytest.approx((1 - tau) * below, abs=1e-9)
    assert expectile([1, 9, 4], [1, 0, 1], 0.5) == 2.5


def test_what_has_no_values_is_refused() -> None:
    for rows in (((1.0, 0.0, 0.0),) * 3, ((1.0,) * 5,) * 4, ((0.0, 1.0, 0.0), (1.0,), (), ()), ()):
        with pytest.raises(ValueError, match="expected are 4 rows of 3, or of 4 with gamble"):
            policy_values(rows)
    for row in ((0.5, 0.6, 0.2), (-0.1, 0.6, 0.5)):
        with pytest.raises(ValueError, match="the row of 'the hall' holds no probabilities"):
            policy_values((row, *MIXED[1:]))
    with pytest.raises(ValueError, match=r"the discount is 1\.0"):
        optimal_values(1.0)
    for tau in (0.0, 1.0):
        with pytest.raises(ValueError, match="between 0 and 1"):
            expectile_values(tau)
    with pytest.raises(ValueError, match="no value has a weight"):
        expectile([1.0], [0.0], 0.5)
    with pytest.raises(ValueError, match="no single solution"):
        solved([[1, 2], [2, 4]], [1, 1])


def test_elimination_exchanges_rows() -> None:
    assert solved([[0, 2, 1], [1, 0, 0], [4, 1, 0]], [7, 1, 6]) == pytest.approx((1, 2, 3))


def test_played_episodes_have_these_values() -> None:
    """20,000 steps under a policy: for each room, and each action in it, what followed its first
    visit in an episode. Episodes are apart, so their mean has a standard error, and seeds are
    fixed."""
    after: dict[tuple[int, ...], list[float]] = defaultdict(list)
    world = CorridorEnvironment(CorridorSettings(max_steps=1000))
    chance = random.Random("a policy of the corridor")
    steps = seed = 0
    while steps < 20_000:
        visits, rewards = _episode(world, seed, chance)
        to_go = 0.0
        firsts: dict[tuple[int, ...], float] = {}
        for (room, action), reward in zip(reversed(visits), reversed(rewards), strict=True):
            to_go = reward + DISCOUNT * to_go
            firsts[room,] = firsts[room, action] = to_go
        for visit, value in firsts.items():
            after[visit].append(value)
        steps, seed = steps + len(rewards), seed + 1
    exact = policy_values(MIXED)
    assert len(after) == len(ROOMS) * (1 + len(ACTIONS))
    for visit, values in after.items():
        count, mean = len(values), math.fsum(values) / len(values)
        deviation = math.sqrt(math.fsum((x - mean) ** 2 for x in values) / (count - 1))
        expected = exact.v[visit[0]] if len(visit) == 1 else exact.q[visit[0]][visit[1]]
        assert count > 300, visit
        # Sixteen means: one in some hundred tables has one that is off by more.
        assert abs(mean - expected) <= 3.5 * deviation / math.sqrt(count) + 1e-12, visit


def _episode(
    world: CorridorEnvironment, seed: int, chance: random.Random
) -> tuple[list[tuple[int, int]], list[float]]:
    """Rooms with the numbers of actions, and rewards, of one that is played to its end."""
    task = world.tasks("train")[seed % 7]
    seen, _ = world.reset(task, seed=seed)
    visits, rewards, done = list[tuple[int, int]](), list[float](), False
    while not done:
        draw = chance.random()
        action = 0 if draw < 0.2 else 1 if draw < 0.7 else 2
        visits.append((ROOMS.index(seen), action))
        seen, reward, done, _, _ = world.step(ACTIONS[action])
        rewards.append(reward)
    return visits, rewards


GAMBLERS = ((0.0, 0.5, 0.0, 0.5),) * 4
"""`right` and `gamble`, each half of the time."""


def test_a_gamble_is_worth_the_same_everywhere_and_never_best() -> None:
    plain, best = optimal_values(), optimal_values(gamble=True)
    assert best.v == pytest.approx(plain.v, abs=1e-12)
    assert [len(row) for row in best.q] == [4] * 4
    assert [row[3] for row in best.q] == pytest.approx([-2.5] * 4, abs=1e-12)
    assert all(max(row) == row[1] for row in best.q)
    # A policy that never gambles is worth what it is where there is no gamble.
    same = policy_values(tuple((*row, 0.0) for row in MIXED))
    assert same.v == pytest.approx(policy_values(MIXED).v, abs=1e-12)


def test_gamblers_values_solve_their_equations() -> None:
    """By hand: v of a room is half of -2.5 and half of `right`, from the gate backwards."""
    after, expected = 0.0, list[float]()
    for reward in (GOES_ON * 10 - 0.2, -1.0, -1.0, -1.0):
        # v = -1.25 + (reward + .9 (.8 after + .2 v)) / 2
        after = (-1.25 + reward / 2 + 0.36 * after) / (1 - 0.09)
        expected.insert(0, after)
    assert policy_values(GAMBLERS).v == pytest.approx(expected, abs=1e-12)


def _law(policy: Sequence[Sequence[float]], steps: int) -> dict[tuple[float, bool], float]:
    """Probabilities of an episode's sum of rewards and of whether a won gamble ended it, by the
    rules, step for step."""
    inside, law = {0: 1.0}, Counter[tuple[float, bool]]()
    for taken in range(steps):
        stay = defaultdict[int, float](float)
        for room, likely in inside.items():
            for chosen, action in zip(policy[room], (*ACTIONS, GAMBLE), strict=True):
                luck = WINS if action == GAMBLE else GOES_ON
                for share, good in ((luck, True), (1 - luck, False)):
                    weight = likely * chosen * share
                    after = outcome(room, action, goes_on=good, wins=good)
                    if after.room is None:
                        law[after.reward - taken, action == GAMBLE and good] += weight
                    else:
                        stay[after.room] += weight
        inside = dict(stay)
    return law


def _luck_in_the_best(law: Sequence[tuple[tuple[float, bool], float]], share: float) -> float:
    """Of the best `share` of all episodes by reward, the part that won a gamble; of the reward at
    which the best end, as much as is left."""
    left, luck = share, 0.0
    for reward in sorted({reward for (reward, _), _ in law}, reverse=True):
        here = math.fsum(p for (each, _), p in law if each == reward)
        lucky = math.fsum(p for (each, by_luck), p in law if each == reward and by_luck)
        luck += lucky * min(1.0, left / here) if here else 0.0
        left -= min(left, here)
    return luck / share


def test_the_best_tenth_of_gamblers_is_luck() -> None:
    """Who imitates the best tenth of such episodes imitates gambling, which is worth -2.5."""
    law = _law(GAMBLERS, 60)
    assert math.fsum(law.values()) == pytest.approx(1, abs=1e-9)
    # A step leads on before a gamble ends the episode with .4 / (.4 + .5), and four have to.
    through = (4 / 9) ** 4
    won = math.fsum(p for (_, lucky), p in law.items() if lucky)
    assert won == pytest.approx(WINS * (1 - through), abs=1e-9)
    best = _luck_in_the_best([*law.items()], 0.1)
    assert best == pytest.approx(0.9609816, abs=1e-6)
    # The same of episodes that the gambling expert plays: a tenth of 3,000, five deviations.
    world = CorridorEnvironment(CorridorSettings(gamble=True, tasks=3000))
    episodes = Counter[tuple[float, bool]]()
    for task in world.tasks("train"):
        world.reset(task)
        rows = [world.step(each.action) for each in plan(task, 0, 60, gambles=0.5)]
        episodes[math.fsum(row[1] for row in rows), rows[-1][1] == 20] += 1
    found = _luck_in_the_best([(key, n / 3000) for key, n in episodes.items()], 0.1)
    assert found == pytest.approx(best, abs=0.08)

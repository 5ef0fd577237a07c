"""The corridor's rules, its chance, its expert, its snapshots, and what is declared of it."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import pairwise
from statistics import mean
from typing import Any

import pytest
from tests.support.corridor_values import optimal_values

from agentc.program.settings import settings_from
from agentc_backends.environments.corridor.backend import BACKEND
from agentc_backends.environments.corridor.environment import CorridorEnvironment, refusal
from agentc_backends.environments.corridor.job_serve import opener
from agentc_backends.environments.corridor.rules import (
    ACTIONS,
    GAMBLE,
    GOES_ON,
    ROOMS,
    WINS,
    goes_on,
    outcome,
    wins,
)
from agentc_backends.environments.corridor.settings import CorridorSettings
from agentc_backends.environments.server.environment import EpisodeError
from agentc_backends.environments.server.sessions import EnvironmentSession

HALL, KITCHEN, STAIRS, GATE = ROOMS
TASK = "train-0"


def seed_of(*wanted: bool) -> int:
    """The first seed under which `right` leads on, or not, at each of the first steps."""
    return next(
        seed
        for seed in range(10_000)
        if all(goes_on(TASK, seed, step) is each for step, each in enumerate(wanted))
    )


def played(
    seed: int, *actions: str, settings: CorridorSettings | None = None
) -> list[tuple[str, float, bool]]:
    world = CorridorEnvironment(settings)
    world.reset(TASK, seed=seed)
    return [world.step(action)[:3] for action in actions]


def test_right_leads_on_where_chance_lets_it() -> None:
    assert played(seed_of(True, False, True, True, False, True), *["right"] * 7) == [
        (KITCHEN, -1, False),
        (KITCHEN, -1, False),
        (STAIRS, -1, False),
        (GATE, -1, False),
        (GATE, -1, False),
        ("out in the garden", 10, True),
        ("The episode is over.", 0, True),
    ]


def test_left_and_look_heed_no_chance() -> None:
    for seed in range(20):
        assert played(seed, "look", "left", "left") == [
            (HALL, -1, False),
            ("out in the street", -5, True),
            ("The episode is over.", 0, True),
        ]
    went = played(seed_of(True, True), "right", "right", "left", "look", "left", "left")
    assert went == [
        (KITCHEN, -1, False),
        (STAIRS, -1, False),
        (KITCHEN, -1, False),
        (KITCHEN, -1, False),
        (HALL, -1, False),
        ("out in the street", -5, True),
    ]


@pytest.mark.parametrize(
    "said", ["", "  ", "Go right", "right.", "righ", "left right", "a " * 2000]
)
def test_what_is_no_action_looks_and_is_told(said: str) -> None:
    seed = seed_of(True, True)
    for before, room in ((), HALL), (("right",), KITCHEN):
        assert played(seed, *before, said)[-1] == (f"{refusal(ACTIONS)}\n{room}", -1, False)
        assert played(seed, *before, "look")[-1] == (room, -1, False)


@pytest.mark.parametrize("said", [" right", "right\n", "RIGHT"])
def test_spaces_and_case_do_not_matter(said: str) -> None:
    assert played(seed_of(True), said) == [(KITCHEN, -1, False)]


def test_every_outcome() -> None:
    """The table of the rules, written out."""
    found = {
        (room, action, on): (after.reward, after.room)
        for room in range(4)
        for action in ACTIONS
        for on in (True, False)
        for after in [outcome(room, action, goes_on=on)]
    }
    expected: dict[tuple[int, str, bool], tuple[float, int | None]] = {}
    for room in range(4):
        for on in (True, False):
            expected[room, "look", on] = (-1, room)
            expected[room, "left", on] = (-1, room - 1) if room else (-5, None)
        expected[room, "right", True] = (-1, room + 1) if room < 3 else (10, None)
        expected[room, "right", False] = (-1, room)
    assert found == expected


def test_chance_is_a_function_of_task_seed_and_step_in_every_process() -> None:
    program = (
        "from agentc_backends.environments.corridor.rules import goes_on\n"
        "print([goes_on(t, s, n) for t in ('train-0', 'test-3') for s in (0, 7) "
        "for n in range(30)])"
    )
    here = [goes_on(t, s, n) for t in ("train-0", "test-3") for s in (0, 7) for n in range(30)]
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(here)
    # What was said before changes nothing.
    seed = seed_of(False, True)
    assert played(seed, "right", "right")[1] == (KITCHEN, -1, False)
    assert played(seed, "look", "right")[1] == (KITCHEN, -1, False)
    assert played(seed, "xyzzy", "right")[1] == (KITCHEN, -1, False)


def test_chance_is_as_likely_as_is_said_and_differs() -> None:
    draws = {
        (task, seed): [goes_on(task, seed, step) for step in range(20)]
        for task in ("train-0", "train-1", "test-0")
        for seed in range(300)
    }
    drawn = [each for row in draws.values() for each in row]
    spread = (GOES_ON * (1 - GOES_ON) / len(drawn)) ** 0.5
    assert abs(mean(drawn) - GOES_ON) < 3 * spread
    # One step says nothing of the next one.
    pairs = [both for row in draws.values() for both in pairwise(row)]
    both_on = mean(one and other for one, other in pairs)
    assert abs(both_on - GOES_ON**2) < 0.015
    assert len({tuple(row) for row in draws.values()}) > 0.85 * len(draws)


def test_the_expert_goes_right_until_it_is_out() -> None:
    world = CorridorEnvironment()
    lengths = []
    for split in world.splits:
        for task in world.tasks(split):
            for seed in (0, 1, 5):
                plan = world.expert_steps(task, seed=seed)
                assert {step.action for step in plan} == {"right"}
                world.reset(task, seed=seed)
                rows = [world.step(step.action) for step in plan]
                assert [row[2] for row in rows] == [False] * (len(plan) - 1) + [True]
                assert sum(row[1] for row in rows) == 11 - len(plan)
                lengths.append(len(plan))
    assert mean(lengths) == pytest.approx(5, abs=0.15)
    # Nothing is better in any room.
    assert {max(zip(row, ACTIONS, strict=True))[1] for row in optimal_values().q} == {"right"}


def test_a_limit_cuts_episodes_and_does_not_end_them() -> None:
    settings = CorridorSettings(max_steps=5)
    world = CorridorEnvironment(settings)
    assert world.reset(TASK)[1] == {"step_limit": 5}
    rows = [world.step("look") for _ in range(7)]
    assert [row[1:4] for row in rows] == [
        *[(-1, False, False)] * 5,
        *[(0, True, False)] * 2,
    ]
    assert rows[5][0] == "The episode is over."
    # Such a plan is as long as it may be; the street at the last step is the lowest sum.
    slow = seed_of(False, False, True, True, True)
    assert len(world.expert_steps(TASK, seed=slow)) == 5
    lowest = played(0, *["look"] * 4, "left", settings=settings)
    highest = played(seed_of(*[True] * 4), *["right"] * 4, settings=settings)
    sums = tuple(sum(row[1] for row in rows) for rows in (lowest, highest))
    assert sums == world.reward_range == (-9, 7)


def test_tasks_have_names_of_their_own_whatever_their_number() -> None:
    few, many = (CorridorEnvironment(CorridorSettings(tasks=n)) for n in (2, 1000))
    assert few.tasks("train") == ("train-0", "train-1") == tuple(many.tasks("train"))[:2]
    assert few.numbered_tasks() == (
        *("train-0", "train-1", "validation-0", "validation-1", "test-0", "test-1"),
    )
    assert not few.has_task("train-2")
    assert many.has_task("train-999")
    with pytest.raises(KeyError, match="no task 'train-2'"):
        few.reset("train-2")
    with pytest.raises(KeyError, match="no split 'dev'"):
        few.tasks("dev")
    with pytest.raises(EpisodeError, match="reset"):
        few.step("look")


def test_a_snapshot_goes_on_elsewhere_and_a_broken_one_changes_nothing() -> None:
    seed = seed_of(True, False, True)
    world, other = CorridorEnvironment(), CorridorEnvironment()
    world.reset(TASK, seed=seed)
    world.step("right")
    state = json.loads(json.dumps(world.snapshot()))
    other.restore(state)
    rest = ["right", "right", "look", "right", "left", "right"]
    assert [world.step(a) for a in rest] == [other.step(a) for a in rest]
    kept = other.snapshot()
    broken: tuple[dict[str, Any], ...] = (
        *({"room": 4}, {"room": -1}, {"steps": 61}, {"steps": -1}, {"task_id": "x"}),
        *({"seed": "0"}, {"done": 2}, {"version": 2}, {"environment": "textcraft"}),
    )
    for each in broken:
        with pytest.raises(ValueError, match="not a snapshot"):
            other.restore({**state, **each})
    assert other.snapshot() == kept


def test_a_session_is_restored_after_a_step_that_gives_more_than_an_episode_can() -> None:
    session = EnvironmentSession(0, CorridorEnvironment())
    session.reset(TASK, seed_of(*[True] * 4))
    for _ in range(4):
        session.step("right")
    assert session.reward == 10 > session.environment.reward_range[1]
    copy = EnvironmentSession(1, CorridorEnvironment())
    copy.restore(json.loads(json.dumps(session.snapshot())))
    assert (copy.reward, copy.done) == (10, True)
    for reward in (72, -72):
        with pytest.raises(ValueError, match="not a snapshot"):
            copy.restore({**session.snapshot(), "reward": reward})


@pytest.mark.parametrize(
    "given",
    [{}, {"max_steps": 8}, {"tasks": 3, "max_steps": 200}, {"gamble": True, "max_steps": 9}],
)
def test_what_is_declared_is_what_is_served(given: dict[str, Any]) -> None:
    declared, world = BACKEND.under(given), opener(given)()
    assert declared.reward_range == world.reward_range
    assert declared.success_at == world.success_threshold
    assert declared.max_turns == world.default_max_steps
    assert declared.capabilities == world.capabilities
    assert declared.splits == world.splits
    assert declared.expected_tasks is not None
    assert declared.expected_tasks(given) == {
        split: (len(world.tasks(split)), 1.0) for split in world.splits
    }


def test_settings_without_sense_are_refused() -> None:
    for wrong in ({"tasks": 0}, {"max_steps": 3}, {"expert_gambles": 0.5}):
        with pytest.raises(ValueError, match=r"expected [14] or more|no gamble"):
            settings_from(CorridorSettings, wrong)
        assert BACKEND.under(wrong).max_turns == 60


def test_an_experts_episode_is_as_stated() -> None:
    assert BACKEND.expected_expert is not None
    for given in ({}, {"max_steps": 4}, {"gamble": True, "expert_gambles": 0.5}):
        stated, world = (
            BACKEND.expected_expert(given),
            CorridorEnvironment(CorridorSettings(**given)),
        )
        turns, observations = [], []
        for task in (each for split in world.splits for each in world.tasks(split)):
            plan = world.expert_steps(task)
            turns.append(len(plan))
            assert stated.prompt == len(world.reset(task)[0])
            observations += [len(world.step(step.action)[0]) for step in plan]
        for told, is_so in (
            (stated.turns, mean(turns)),
            # Agents read it behind "Observation: ".
            (stated.observation, mean(observations) + len("Observation: ")),
        ):
            assert is_so / stated.factor < told < is_so * stated.factor


@pytest.mark.parametrize(("skill", "share"), [(0.0, 1 / 3), (0.25, 0.5), (1.0, 1.0)])
def test_an_expert_of_less_skill_goes_right_less_often(skill: float, share: float) -> None:
    world = CorridorEnvironment(CorridorSettings(expert_skill=skill))
    said: list[str] = []
    for seed in range(200):
        steps = world.expert_steps(TASK, seed=seed)
        assert steps == world.expert_steps(TASK, seed=seed)
        world.reset(TASK, seed=seed)
        ended = [world.step(step.action)[2] for step in steps]
        assert not any(ended[:-1])
        assert ended[-1] or len(steps) == CorridorSettings().max_steps
        said += [step.action for step in steps]
    # Of 1,000 actions and more; five standard deviations.
    assert said.count("right") / len(said) == pytest.approx(share, abs=0.08 if skill < 1 else 0)


GAMBLING = CorridorSettings(gamble=True)


def test_a_gamble_ends_the_episode_by_a_chance_of_its_own() -> None:
    rich, poor = ("out with a purse of gold", 20, True), ("out with nothing left", -5, True)
    won = next(seed for seed in range(1000) if wins(TASK, seed, 1))
    lost = next(seed for seed in range(1000) if not wins(TASK, seed, 1))
    for seed, end in ((won, rich), (lost, poor)):
        for before in ("look", "right", "xyzzy"):
            said = played(seed, before, " Gamble", "gamble", settings=GAMBLING)
            assert said[1:] == [end, ("The episode is over.", 0, True)]
    steps = [(seed, step) for seed in range(1000) for step in range(20)]
    drawn = [wins(TASK, *each) for each in steps]
    assert abs(mean(drawn) - WINS) < 3 * (WINS * (1 - WINS) / len(drawn)) ** 0.5
    # It has nothing to do with whether `right` leads on.
    both = mean(goes_on(TASK, *each) for each, won in zip(steps, drawn, strict=True) if won)
    assert both == pytest.approx(GOES_ON, abs=0.03)


def test_without_the_option_a_gamble_is_no_action() -> None:
    assert played(0, "gamble") == [(f"{refusal(ACTIONS)}\n{HALL}", -1, False)]
    told = refusal((*ACTIONS, GAMBLE))
    assert told == "That is none of the actions left, right, look and gamble."
    assert played(0, "run", settings=GAMBLING) == [(f"{told}\n{HALL}", -1, False)]
    assert CorridorEnvironment().identity()["options"]["gamble"] is False
    assert CorridorEnvironment(GAMBLING).identity()["options"]["gamble"] is True
    assert CorridorEnvironment(GAMBLING).reward_range == (-64, 20)


def test_an_expert_that_gambles_does_so_as_often_as_is_said() -> None:
    world = CorridorEnvironment(CorridorSettings(gamble=True, expert_gambles=0.5))
    said: list[str] = []
    for task in world.tasks("train"):
        for seed in range(10):
            steps = world.expert_steps(task, seed=seed)
            world.reset(task, seed=seed)
            ended = [world.step(step.action)[2] for step in steps]
            assert ended == [*[False] * (len(steps) - 1), True]
            said += [step.action for step in steps]
    assert set(said) == {"right", "gamble"}
    # Of 1,700 actions; four standard deviations.
    assert said.count("gamble") / len(said) == pytest.approx(0.5, abs=0.05)
    # Its right steps are those that it would take without a gamble: chance is a function.
    assert CorridorEnvironment(GAMBLING).expert_steps(TASK) == CorridorEnvironment().expert_steps(
        TASK
    )

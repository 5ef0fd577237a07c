"""Environments as gymnasium's: its own checks pass, rewards add up, states can be kept."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env

from agentc_backends.environments.gym import SettingsError, TextEnvironment, make
from agentc_backends.environments.server.program import NotInsideError

PAGE = Path(__file__).parents[3] / "docs" / "environments.md"
NAMES = {
    "env.textcraft": {},
    "env.alfworld": {"invented_games": 60},
    "env.webshop": {"products": 200},
    "env.twenty_questions": {},
    "env.guess_my_city": {},
    "env.corridor": {},
}


@pytest.mark.parametrize("name", NAMES)
def test_gymnasiums_own_check_passes(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(make(name, **NAMES[name]))


@pytest.mark.parametrize("name", NAMES)
def test_the_rewards_of_an_experts_episode_add_up_to_its_reward(name: str) -> None:
    env = make(name, **NAMES[name])
    task = env.tasks()[-1]
    observation, info = env.reset(seed=1, options={"task": task})
    assert (info["task"], env.render()) == (task, observation)
    low, high = env.environment.reward_range
    total, terminated = min(max(0.0, low), high), False
    for step in env.expert(task, seed=1):
        assert not terminated
        _, reward, terminated, truncated, info = env.step(step.action)
        assert not (terminated and truncated)
        total += reward
    assert terminated
    assert total == pytest.approx(info["score"])
    assert info["score"] >= env.environment.success_threshold


def test_tasks_are_drawn_from_the_split_and_by_the_seed() -> None:
    env = make("textcraft", split="test", max_depth=2)
    drawn = [env.reset(seed=seed)[1]["task"] for seed in range(8)]
    assert drawn == [env.reset(seed=seed)[1]["task"] for seed in range(8)]
    assert set(drawn) <= set(env.tasks())
    assert len(set(drawn)) > 1
    # The seed is the environment's too: another one words the same task otherwise.
    task = {"task": drawn[0]}
    assert env.reset(seed=1, options=task)[0] != env.reset(seed=2, options=task)[0]
    assert env.reset(options=task)[0] == env.reset(seed=0, options=task)[0]


def test_a_snapshot_goes_on_in_another_environment() -> None:
    env, other = make("alfworld", invented_games=60), make("alfworld", invented_games=60)
    task = env.tasks()[0]
    env.reset(options={"task": task})
    actions = [step.action for step in env.expert(task)]
    for action in actions[:2]:
        env.step(action)
    other.restore(json.loads(json.dumps(env.snapshot())))
    assert [env.step(a) for a in actions[2:]] == [other.step(a) for a in actions[2:]]
    with pytest.raises(ValueError, match="not a snapshot"):
        other.restore({"session": {}})


def test_an_episode_is_cut_at_its_limit() -> None:
    env = make("textcraft", max_turns=2)
    env.reset(seed=0)
    assert env.step("inventory")[2:4] == (False, False)
    assert env.step("inventory")[2:4] == (False, True)
    assert make("textcraft").max_turns == 60


def test_gymnasium_makes_it_again_from_its_spec() -> None:
    env = make("textcraft", split="test", max_depth=2)
    assert env.spec is not None
    again = gymnasium.make(env.spec)
    assert isinstance(again.unwrapped, TextEnvironment)
    assert again.reset(seed=5) == env.reset(seed=5)


def test_the_example_of_the_page_runs() -> None:
    [code] = [b for b in PAGE.read_text(encoding="utf-8").split("```") if "gym import make" in b]
    lines = code.removeprefix("python\n")
    assert len(lines.splitlines()) == 10
    exec(compile(lines, str(PAGE), "exec"), {})


def _wrong(**changes: Any) -> Any:
    return make(**{"name": "textcraft", **changes})


@pytest.mark.parametrize(
    ("changes", "kind", "says"),
    [
        ({"name": "textcaft"}, SettingsError, "did you mean `textcraft`"),
        ({"max_dept": 2}, SettingsError, "did you mean `max_depth`"),
        ({"distractors": "many"}, SettingsError, "expected: a whole number of at least 0"),
        ({"name": "sciworld"}, NotInsideError, "agentc serve sciworld"),
        ({"split": "tset"}, ValueError, "has no split 'tset'; it has train, validation, test"),
    ],
)
def test_what_is_wrong_is_said(changes: Any, kind: type[Exception], says: str) -> None:
    with pytest.raises(kind, match=says):
        _wrong(**changes)


def test_wrong_tasks_and_options_are_said() -> None:
    env = make("textcraft")
    with pytest.raises(ValueError, match="no task 'minecraft:sick'"):
        env.reset(options={"task": "minecraft:sick"})
    with pytest.raises(ValueError, match="no option 'tsak'; there is 'task'"):
        env.reset(options={"tsak": 1})

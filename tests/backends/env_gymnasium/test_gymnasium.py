"""Real environments of gymnasium's, played in words: texts, rewards, ends, and what is refused."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy
import pytest

from agentc_backends.environments.gymnasium.job_serve import open_world
from agentc_backends.environments.gymnasium.settings import GymnasiumSettings
from agentc_backends.environments.gymnasium.spaces import observation_text, uncoloured
from agentc_backends.environments.server.environment import EnvironmentFailure, EpisodeError

SPLITS = {"train": "3-5", "test": "0-2"}
LAKE = {
    "id": "FrozenLake-v1",
    "kwargs": {"map_name": "4x4", "is_slippery": False},
    "actions": ("left", "down", "right", "up"),
    "observation": "ansi",
    "instruction": "Walk from S to G.",
}


@pytest.fixture
def allowed(monkeypatch: pytest.MonkeyPatch) -> str:
    """The folder's own worlds may be imported; their module's name."""
    monkeypatch.setenv("AGENTC_ALLOW_LAUNCH", "1")
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    return "odd_worlds"


def opened(**settings: Any) -> Any:
    return open_world(GymnasiumSettings(splits=SPLITS, **settings))()


def test_a_walk_over_the_lake() -> None:
    lake = opened(**LAKE)
    first, info = lake.reset("FrozenLake-v1_0")
    assert first == ("Walk from S to G.\n[S]FFF\nFHFH\nFFFH\nHFFG\nActions: left, down, right, up")
    assert info == {"step_limit": 100}
    text, reward, terminated, truncated, _ = lake.step("jump")
    assert text == "`jump` is no action. Actions: left, down, right, up"
    assert (reward, terminated, truncated) == (0.0, False, False)
    steps = [lake.step(word) for word in ("down", " DOWN ", "right", "right", "down", "right")]
    assert steps[0][0] == "  (Down)\nSFFF\n[F]HFH\nFFFH\nHFFG"
    assert [step[1:3] for step in steps] == [(0.0, False)] * 5 + [(1.0, True)]
    assert lake.step("left")[1:3] == (1.0, True)
    lake.close()


def test_colours_info_sums_and_the_limit_of_time() -> None:
    settings = {
        "id": "Taxi-v4",
        "kwargs": {"max_episode_steps": 3},
        "observation": "both",
        "colours": "names",
        "info": ("action_mask", "prob", "nothing of that name"),
        "reward": {"lowest": -2000, "highest": 20, "scale": 0.05, "success_at": 0.1},
    }
    taxi = opened(**settings)
    assert taxi.reward_range == (-100.0, 1.0)
    first, info = taxi.reset("Taxi-v4_3")
    assert info == {"step_limit": 3}
    assert first.splitlines() == [
        "42",
        "+---------+",
        "|<blue>R</blue>: |<yellow> </yellow>: :G|",
        "| : | : : |",
        "| : : : : |",
        "| | : | : |",
        "|<magenta>Y</magenta>| : |B: |",
        "+---------+",
        "action_mask: [1, 0, 1, 0, 0, 0]",
        "prob: 1",
        "Actions: 0, 1, 2, 3, 4, 5",
    ]
    steps = [taxi.step("1") for _ in range(3)]
    assert [step[1] for step in steps] == pytest.approx([-0.05, -0.1, -0.15])
    assert [step[2:4] for step in steps] == [(False, False), (False, False), (False, True)]


def test_a_task_is_its_seed() -> None:
    jack = opened(id="Blackjack-v1", actions=("stick", "hit"), reward={"lowest": -1})
    texts = [jack.reset(f"Blackjack-v1_{n}", seed=s)[0] for n in (0, 1, 2) for s in (0, 7)]
    assert texts[::2] == texts[1::2]
    assert len(set(texts)) > 1
    assert texts[0].splitlines()[1] == "Actions: stick, hit"
    _, reward, terminated, _, _ = jack.step("stick")
    assert reward in (-1.0, 0.0, 1.0)
    assert terminated


def test_a_space_of_texts(allowed: str) -> None:
    riddle = opened(id=f"{allowed}:Riddle-v0", info=("asked",), digits=3)
    task = riddle.tasks("test")[1]
    first, _ = riddle.reset(task)
    assert first.startswith("Riddle ")
    assert "cannot hold '!' '?'" in riddle.step("what?!")[0]
    assert "1 to 8 characters, this one has 9" in riddle.step("abc abc a")[0]
    assert riddle.step("air")[:3] == ("No.\nasked: 0.333", 0.0, False)
    assert riddle.step("echo")[:3] == ("Right.\nasked: 0.333", 1.0, True)


def test_what_goes_wrong_voids_the_episode_alone(allowed: str) -> None:
    riddle = opened(id=f"{allowed}:Riddle-v0", kwargs={"reward": 2.0})
    with pytest.raises(EpisodeError):
        riddle.step("echo")
    task = riddle.tasks("train")[0]
    riddle.reset(task)
    with pytest.raises(EnvironmentFailure, match="RuntimeError: the sphinx fell"):
        riddle.step("crash")
    with pytest.raises(EpisodeError):
        riddle.step("air")
    riddle.reset(task)
    with pytest.raises(
        EnvironmentFailure, match="reward is 2, but this entry's `reward` says 0 to 1"
    ):
        riddle.step("echo")


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"id": "FrozenLak-v1"}, "Did you mean: `FrozenLake`"),
        ({**LAKE, "actions": ("left", "right")}, "`actions` names 2, but the environment has 4"),
        ({"id": "Pendulum-v1"}, "only for Discrete and Text spaces"),
        ({"id": "Blackjack-v1", "observation": "ansi"}, "renders no text"),
        ({"id": "FrozenLake-v1", "kwargs": {"map_name": "4x4", "ice": 3}}, "cannot be made: .*ice"),
        ({"id": "odd_worlds:Pictures-v0"}, "its observations are pictures"),
        ({"id": "odd_worlds:Riddle-v0", "actions": ("echo",)}, "those of a Discrete space"),
        ({"id": "no_such_package:Riddle-v0"}, "No module named 'no_such_package'"),
    ],
)
def test_what_cannot_be_played_is_refused(
    settings: dict[str, Any], says: str, allowed: str
) -> None:
    with pytest.raises(ValueError, match=says):
        opened(**settings)


@pytest.mark.parametrize("id", ["antigravity:Riddle-v0", "GymV26Environment-v0"])
def test_code_of_others_is_not_imported_unless_somebody_allows_it(
    id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AGENTC_ALLOW_LAUNCH", raising=False)
    with pytest.raises(ValueError, match="export AGENTC_ALLOW_LAUNCH=1"):
        opened(id=id)
    assert "antigravity" not in sys.modules


def test_how_values_are_told() -> None:
    value = {
        "position": numpy.array([0.123456, 2.0], dtype=numpy.float32),
        "cards": (numpy.int64(3), True, "a b"),
        "inner": {"x": 1e9, "none": None},
        "said": "plain",
    }
    assert observation_text(value, 3) == (
        'position: [0.123, 2]\ncards: [3, true, "a b"]\ninner: {x: 1e+09, none: none}\nsaid: plain'
    )
    assert observation_text(numpy.array(7), 4) == "7"
    with pytest.raises(TypeError, match="no text"):
        observation_text(numpy.zeros((40, 40)), 4)
    with pytest.raises(TypeError, match="type set"):
        observation_text({1, 2}, 4)


def test_colours_become_words() -> None:
    text = "\x1b[41mS\x1b[0mF\x1b[34;1mR\x1b[0m\x1b[1mb\x1b[0m \n\n"
    assert uncoloured(text, "brackets") == "[S]F[R]b"
    assert uncoloured(text, "names") == "<red>S</red>F<blue>R</blue>b"
    assert uncoloured(text, "drop") == "SFRb"

"""Episodes on a server that holds one at a time and fails in every way that the protocol has."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.backends.env_openenv.odd_upstream import Odd, odd_server
from tests.support.patience import PATIENCE_S

from agentc_backends.environments.openenv.connection import OpenEnvUpstream
from agentc_backends.environments.openenv.environment import OpenEnvEnvironment
from agentc_backends.environments.openenv.job_serve import _survey as survey
from agentc_backends.environments.openenv.settings import OpenEnvSettings
from agentc_backends.environments.server.environment import EnvironmentFailure, EpisodeError

SPLITS = {"test": "0-4"}


@pytest.fixture
def odd() -> Iterator[Odd]:
    with odd_server() as server:
        yield server


def opened(odd: Odd, *, timeout_s: float = PATIENCE_S, **settings: Any) -> OpenEnvEnvironment:
    made = OpenEnvSettings(splits=SPLITS, url=odd.url, **settings)
    return OpenEnvEnvironment(survey(OpenEnvUpstream(odd.url, timeout_s=timeout_s), made))


def nothing_is_held(odd: Odd) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while odd.held and time.monotonic() < deadline:
        time.sleep(0.01)
    return odd.held == 0


def test_an_episode_gives_its_place_back_at_its_end(odd: Odd) -> None:
    played = opened(odd, instruction="Say.", reset={"level": 2}, reward={"scale": 2.0})
    assert played.reward_range == (0.0, 2.0)
    text, _ = played.reset("openenv_3", seed=9)
    assert text == "Say.\ntask 3"
    assert odd.resets[-1] == {"level": 2, "seed": 3}
    assert played.step("hello")[:3] == ("hello", 1.0, False)
    assert odd.held == 1
    assert played.step("end")[:3] == ("end", 2.0, True)
    assert nothing_is_held(odd)
    assert played.step("more")[1:3] == (2.0, True)
    assert odd.closed_properly == len(odd.resets)
    identity = played.identity()
    assert identity["server"] == {"name": "odd", "version": "3"}
    assert identity["probes"] == [0, 2, 4]
    assert len(identity["fingerprint"]) == 32


def test_who_comes_while_it_is_full_waits_for_the_place(odd: Odd) -> None:
    first, second = (opened(odd) for _ in range(2))
    first.reset("openenv_0")
    told: list[str] = []
    waiting = threading.Thread(target=lambda: told.append(second.reset("openenv_1")[0]))
    waiting.start()
    waiting.join(0.3)
    assert waiting.is_alive()
    first.close()
    waiting.join(PATIENCE_S)
    assert told == ["task 1"]
    second.close()
    assert nothing_is_held(odd)


def test_a_place_that_never_comes_free_is_a_failure(odd: Odd) -> None:
    first = opened(odd)
    second = opened(odd, timeout_s=0.5)
    first.reset("openenv_0")
    with pytest.raises(EnvironmentFailure, match="CAPACITY_REACHED: all are taken"):
        second.reset("openenv_1")
    first.close()


@pytest.mark.parametrize(
    ("word", "says"),
    [("crash", "EXECUTION_ERROR: no such thing"), ("nan", "the reward of a step is 'much'"),
     ("hang up", "the connection is lost")],
)  # fmt: skip
def test_what_fails_voids_the_episode(odd: Odd, word: str, says: str) -> None:
    played = opened(odd)
    with pytest.raises(EpisodeError):
        played.step("before the reset")
    played.reset("openenv_0")
    with pytest.raises(EnvironmentFailure, match=says):
        played.step(word)
    with pytest.raises(EpisodeError):
        played.step("again")
    assert nothing_is_held(odd)
    assert played.reset("openenv_0")[0] == "task 0"
    played.close()


def test_errors_about_actions_can_be_told_to_the_agent(odd: Odd) -> None:
    played = opened(odd, step_errors="observation")
    played.reset("openenv_0")
    assert played.step("crash")[:3] == ("no such thing", 0.0, False)
    assert played.step("refuse")[:3] == ("Invalid message", 0.0, False)
    assert played.step("hello")[1] == 0.5
    played.close()


def test_a_reward_outside_of_the_bounds_is_a_failure(odd: Odd) -> None:
    played = opened(odd, reward={"highest": 0.4})
    played.reset("openenv_0")
    with pytest.raises(EnvironmentFailure, match="this entry's `reward`"):
        played.step("hello")

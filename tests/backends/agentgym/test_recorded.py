"""Episodes on the recorded exchanges of AgentGym's TextCraft and ScienceWorld servers, answered by
a process of its own (recorded_server.py)."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.patience import PATIENCE_S

from agentc_backends.environments.agentgym.dialects import FAMILY, overridden
from agentc_backends.environments.agentgym.environment import (
    OVER,
    AgentGymEnvironment,
    UpstreamShared,
)
from agentc_backends.environments.agentgym.upstream import ErrorReplyError, Upstream, UpstreamError
from agentc_backends.environments.external.task_lists import Fingerprint
from agentc_backends.environments.server.environment import EnvironmentFailure, EpisodeError

RECORDINGS = Path(__file__).parents[4] / "shared" / "data" / "agent_r_fixtures"
Connect = Callable[..., Upstream]


@pytest.fixture
def connect(tmp_path: Path) -> Iterator[Connect]:
    """`connect("textcraft")`: a client of a server that replays that recording."""
    processes: list[subprocess.Popen[bytes]] = []
    upstreams: list[Upstream] = []

    def start(name: str, **changes: object) -> Upstream:
        recording = RECORDINGS / f"{name}_session.jsonl"
        if not recording.is_file():
            pytest.skip(f"the recorded exchanges are not here ({recording})")
        ready = tmp_path / f"{name}.port"
        program = [sys.executable, str(Path(__file__).with_name("recorded_server.py"))]
        processes.append(subprocess.Popen([*program, str(recording), str(ready)]))
        deadline = time.monotonic() + PATIENCE_S
        while not (ready.exists() and ready.read_text()):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        url = f"http://127.0.0.1:{ready.read_text()}"
        upstreams.append(Upstream(url, overridden(FAMILY[name], changes), timeout_s=10.0))
        return upstreams[-1]

    yield start
    for upstream in upstreams:
        upstream.close()
    for process in processes:
        process.kill()
        process.wait()


def episode_on(upstream: Upstream, *numbers: int) -> AgentGymEnvironment:
    served = UpstreamShared(upstream, {"test": numbers}, Fingerprint(None, ()), upstream.greeting())
    return AgentGymEnvironment(served, served.numbers())


def test_textcraft_from_the_first_word_to_the_reward(connect: Connect) -> None:
    episode = episode_on(connect("textcraft"), 31)
    assert episode.identity()["greeting"] == "This is environment TextCraft."
    first, _ = episode.reset("textcraft_31", seed=5)
    assert first.endswith("Goal: craft diamond block.")
    actions = [
        "inventory",
        "craft 1 diamond block using 9 diamond",
        "get 4 diamond",
        "get 1 diamond block",
        "get 1 unobtainium",
        "get 5 diamond",
        "inventory",
    ]
    told = [episode.step(action) for action in actions]
    assert [row[1:3] for row in told] == [(0.0, False)] * 7
    assert told[0][0] == "Inventory: You are not carrying anything."
    assert told[-1][0] == "Inventory: [diamond] (9) "
    won = episode.step("craft 1 diamond block using 9 diamond")
    assert won[:3] == ("Crafted 1 minecraft:diamond_block", 1.0, True)
    # The released server goes on here, with `done` false again and no reward.
    assert episode.step("inventory")[:3] == (OVER, 1.0, True)
    again, _ = episode.reset("textcraft_31")
    assert again == first
    assert episode.step("inventory")[:3] == (
        "Inventory: You are not carrying anything.",
        0.0,
        False,
    )


def test_sciworld_scores_add_up_and_a_fatal_mistake_ends(connect: Connect) -> None:
    episode = episode_on(connect("sciworld"), 0, 3491)
    first, _ = episode.reset("sciworld_0")
    assert first.startswith("Your task is to boil water.")
    assert "\nThis room is called the hallway." in first
    assert episode.step("open door to kitchen")[:3] == ("The door is now open.", 0.0, False)
    episode.step("go to kitchen")
    assert episode.step("bogus action")[0] == "No known action matches that input."
    assert episode.step("focus on table")[:3] == ("You focus on the table.", -1.0, True)
    assert episode.step("look around")[:3] == (OVER, -1.0, True)
    episode.reset("sciworld_3491")
    episode.step("inventory")
    assert episode.step("focus on air")[:3] == ("You focus on the air.", 0.5, False)
    # The step itself brought 0; the episode's reward stays.
    assert episode.step("look around")[1:3] == (0.5, False)


def test_an_error_in_a_200_voids_the_episode(connect: Connect) -> None:
    upstream = connect("sciworld")
    session = upstream.acquire()
    with pytest.raises(ErrorReplyError, match="list index out of range"):
        upstream.reset(session, 1000000)
    upstream.release(session)
    episode = episode_on(upstream, 1000000)
    with pytest.raises(EnvironmentFailure, match="list index out of range"):
        episode.reset("sciworld_1000000")
    with pytest.raises(EpisodeError):
        episode.step("look around")


def test_an_error_may_be_meant_for_the_agent(connect: Connect) -> None:
    upstream = connect("sciworld", step_errors="observation")
    session = upstream.acquire()
    with pytest.raises(ErrorReplyError, match="variationIdx"):
        upstream.step(session, "look around")
    upstream.release(session)
    episode = episode_on(upstream, 0)
    episode.reset("sciworld_0")
    told = episode.step("look around")
    assert told[:3] == ("The task with environment 0 has finished.", 0.0, False)


def test_sessions_are_used_again_and_never_by_two(connect: Connect) -> None:
    upstream = connect("textcraft")
    one = upstream.acquire()
    upstream.release(one)
    assert upstream.acquire() == one
    # The recording gives session 0 to whoever asks: what a full server does.
    with pytest.raises(UpstreamError, match="gave out session 0 twice"):
        upstream.acquire()


def test_no_server_is_an_error_that_names_the_address() -> None:
    upstream = Upstream("http://127.0.0.1:9", FAMILY["textcraft"], timeout_s=1.0)
    with pytest.raises(UpstreamError, match=r"no answer from http://127\.0\.0\.1:9"):
        upstream.acquire()
    upstream.close()

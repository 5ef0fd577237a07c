"""The adapter before a server of the family's other half: bare numbers, no /close, few sessions."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.backends.agentgym.conftest import Adapter, StartAdapter

PROGRAM = Path(__file__).with_name("odd_server.py")
StartOdd = Callable[..., Adapter]


@pytest.fixture
def start_odd(start_adapter: StartAdapter) -> StartOdd:
    """`start_odd(most=8, dialect={...}, flags)`: sessions that the server holds, changes to
    SQLGym's dialect."""

    def start(*flags: str, most: int = 8, **dialect: Any) -> Adapter:
        launch = {"command": [sys.executable, str(PROGRAM), "{port}", "--most", str(most)]}
        told = ["--dialect", json.dumps(dialect)]
        return start_adapter(launch, *told, *flags, server="sqlgym", splits={"test": "0-9"})

    return start


def play(adapter: Adapter, number: int) -> list[Any]:
    session, first = adapter.open(f"sqlgym_{number}")
    told = [first]
    for _ in range(number + 3):
        step = adapter.post("/step", id=session, action="add 1")
        told.append([step["observation"], step["reward"], step["done"]])
    adapter.post("/close", id=session)
    return told


def test_a_whole_episode(start_odd: StartOdd) -> None:
    adapter = start_odd()
    told = play(adapter, 0)
    assert told == ["Reach 3.", ["1 of 3", 0, False], ["2 of 3", 0, False], ["3 of 3", 1, True]]
    assert adapter.meta()["identity"]["greeting"] == "ok"


def test_a_server_that_counts_steps_says_so_where_an_episode_begins(start_odd: StartOdd) -> None:
    """So that replies without an action, which it never sees, count in rollouts and searches."""

    def opened(adapter: Adapter) -> Any:
        session = adapter.post("/create")["id"]
        return adapter.post("/reset", id=session, task_id="sqlgym_0")

    assert opened(start_odd(step_limit=3))["step_limit"] == 3
    assert "step_limit" not in opened(start_odd())


def test_more_episodes_than_the_server_holds_wait_for_each_other(start_odd: StartOdd) -> None:
    adapter = start_odd(most=2, sessions=2)
    alone = [play(adapter, number) for number in range(6)]
    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(lambda number: play(adapter, number), range(6)))
    assert together == alone


def test_a_session_that_is_handed_out_twice_is_refused(start_odd: StartOdd) -> None:
    adapter = start_odd(most=2, sessions=8)
    held = [adapter.open(f"sqlgym_{number}")[0] for number in range(2)]
    third = adapter.post("/create")["id"]
    told = adapter.post("/reset", id=third, task_id="sqlgym_5", seed=0)
    assert "gave out session" in told["error"]
    for session, number in zip(held, (0, 1), strict=True):
        step = adapter.post("/step", id=session, action="add 1")
        assert step["observation"] == f"1 of {number + 3}"


@pytest.mark.parametrize(
    ("action", "says"), [("crash", "answers 500"), ("refuse", "an error: no such table")]
)
def test_a_failure_voids_one_episode_and_no_other(
    start_odd: StartOdd, action: str, says: str
) -> None:
    adapter = start_odd()
    broken, sound = (adapter.open("sqlgym_1")[0] for _ in range(2))
    adapter.post("/step", id=sound, action="add 1")
    assert says in adapter.post("/step", id=broken, action=action)["error"]
    assert "reset the session" in adapter.post("/step", id=broken, action="add 1")["error"]
    assert adapter.post("/step", id=sound, action="add 1")["observation"] == "2 of 4"
    again = adapter.post("/reset", id=broken, task_id="sqlgym_2", seed=0)
    assert again["observation"] == "Reach 5."
    assert adapter.post("/step", id=broken, action="add 1")["observation"] == "1 of 5"


def test_an_error_about_an_action_may_go_to_the_agent(start_odd: StartOdd) -> None:
    adapter = start_odd(step_errors="observation")
    session, _ = adapter.open("sqlgym_1")
    adapter.post("/step", id=session, action="add 1")
    told = adapter.post("/step", id=session, action="refuse")
    assert (told["observation"], told["reward"], told["done"]) == ("no such table", 0, False)
    assert adapter.post("/step", id=session, action="add 1")["observation"] == "2 of 4"


def test_a_call_that_hangs_ends_in_time_and_holds_nobody_up(start_odd: StartOdd) -> None:
    adapter = start_odd("--timeout", "4")
    stuck, free = (adapter.open("sqlgym_1")[0] for _ in range(2))
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(adapter.post, "/step", id=stuck, action="hang")
        for _ in range(3):
            adapter.post("/step", id=free, action="add 0")
        assert not waiting.done()
        assert "no answer from" in waiting.result()["error"]
    # The hanging call reaches its session later, when it may be nobody else's.
    others = [adapter.open("sqlgym_9")[0] for _ in range(6)]
    time.sleep(4.5)
    for session in others:
        told = adapter.post("/step", id=session, action="add 1")
        assert told["observation"] == "1 of 12"


def test_a_wrong_reward_range_is_noticed(start_odd: StartOdd) -> None:
    adapter = start_odd(reward_range=[0, 0.5], success_at=0.5)
    session, _ = adapter.open("sqlgym_0")
    told = adapter.post("/step", id=session, action="add 9")
    assert "the episode's reward is 1, but `reward_range`" in told["error"]

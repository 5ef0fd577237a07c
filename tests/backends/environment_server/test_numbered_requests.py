"""Requests with sequence numbers: sent twice, they act once; out of order, they are refused."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from running import Running, Start

LEASE = {"client": "somebody", "lease_s": 60}


@pytest.fixture(scope="module")
def bell(start: Start) -> Running:
    """Its steps count in `rung`, in threads."""
    return start("bell")


@pytest.fixture
def session(bell: Running) -> int:
    created = bell.post("/create", **LEASE)
    assert created == {"id": created["id"], "seq": 0}
    number: int = created["id"]
    return number


def test_a_request_sent_again_is_answered_again_and_acts_once(bell: Running, session: int) -> None:
    opened = [bell.post("/reset", id=session, task_id="ding", seq=1) for _ in range(2)]
    assert opened[0] == opened[1]
    assert opened[0]["seq"] == 1
    for seq in (2, 3):
        replies = [bell.post("/step", id=session, action="ring", seq=seq) for _ in range(3)]
        assert replies == [{**replies[0], "rung": seq - 1, "seq": seq}] * 3
    bell.post("/reset", id=session, task_id="ding", seq=4)
    bell.post("/step", id=session, action="ring", seq=5)
    # The reset of before comes late: it must not reach the episode that is played now.
    late = bell.client.post("/reset", json={"id": session, "task_id": "ding", "seq": 4})
    assert (late.status_code, late.json()["expected"]) == (409, 6)
    assert bell.post("/step", id=session, action="ring", seq=6)["rung"] == 2


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"action": "ring", "seq": 3}, 409),
        ({"action": "ring", "seq": 7}, 409),
        ({"action": "other", "seq": 1}, 409),
        ({"action": "ring", "seq": -1}, 422),
        ({"action": "ring", "seq": "1"}, 422),
        ({"action": "ring", "seq": True}, 422),
    ],
)
def test_other_numbers_are_refused_and_change_nothing(
    bell: Running, session: int, body: dict[str, Any], status: int
) -> None:
    bell.post("/reset", id=session, task_id="ding", seq=1)
    reply = bell.client.post("/step", json={"id": session, **body})
    assert reply.status_code == status, reply.text
    assert bell.post("/step", id=session, action="ring", seq=2)["rung"] == 1


def test_copies_that_meet_the_first_one_at_work_wait_for_its_answer(
    bell: Running, session: int
) -> None:
    bell.post("/reset", id=session, task_id="ding", seq=1)
    with ThreadPoolExecutor(4) as pool:
        copies = [
            pool.submit(bell.post, "/step", id=session, action="wait 0.5", seq=2) for _ in range(4)
        ]
    assert len({str(copy.result()) for copy in copies}) == 1
    assert bell.post("/step", id=session, action="ring", seq=3)["rung"] == 1


def test_errors_of_the_world_are_kept_and_refusals_are_not_counted(
    bell: Running, session: int
) -> None:
    early = [bell.post("/step", id=session, action="ring", seq=1) for _ in range(2)]
    assert early == [{"error": "nothing to ring yet"}] * 2
    unknown = bell.client.post("/reset", json={"id": session, "task_id": "dung", "seq": 2})
    assert unknown.status_code == 404
    assert bell.post("/reset", id=session, task_id="dong", seq=2)["seq"] == 2


def test_who_has_lost_count_can_start_over(bell: Running, session: int) -> None:
    bell.post("/reset", id=session, task_id="ding", seq=1)
    bell.post("/step", id=session, action="ring", seq=2)
    assert bell.post("/reset", id=session, task_id="ding", seq=0)["seq"] == 3
    assert bell.post("/step", id=session, action="ring", seq=4)["rung"] == 1


def test_requests_without_numbers_act_each_time_and_leave_the_count_alone(
    bell: Running, session: int
) -> None:
    bell.post("/reset", id=session, task_id="ding", seq=1)
    assert [bell.post("/step", id=session, action="ring")["rung"] for _ in range(2)] == [1, 2]
    assert bell.post("/step", id=session, action="ring", seq=2)["rung"] == 3


def test_a_malformed_snapshot_is_not_counted_and_a_good_one_is(start: Start) -> None:
    server = start("textcraft")
    session = server.post("/create", **LEASE)["id"]
    task = server.tasks()[0]
    server.post("/reset", id=session, task_id=task, seq=1)
    saved = server.post("/snapshot", id=session)["snapshot"]
    bad = server.client.post("/restore", json={"id": session, "snapshot": {}, "seq": 2})
    assert bad.status_code == 422
    twice = [server.post("/restore", id=session, snapshot=saved, seq=2) for _ in range(2)]
    assert twice[0] == twice[1]
    assert twice[0]["seq"] == 2


def test_one_request_steps_many_sessions(bell: Running) -> None:
    numbers = [bell.post("/create", **LEASE)["id"] for _ in range(3)]
    for number in numbers:
        bell.post("/reset", id=number, task_id="ding", seq=1)
    steps: list[object] = [
        {"id": numbers[0], "action": "ring", "seq": 2},
        {"id": numbers[1], "action": "break"},
        {"id": 10**6, "action": "ring"},
        {"id": numbers[2]},
        "ring",
        {"id": numbers[2], "action": "ring", "seq": 9},
        {"id": numbers[2], "action": "ring", "seq": 2},
        {"id": numbers[2], "action": "ring", "seq": 3},
    ]
    results = bell.post("/steps", steps=steps)["results"]
    assert [result.get("status", 200) for result in results] == [200] * 3 + [
        422,
        422,
        409,
        200,
        200,
    ]
    assert results[0]["rung"] == 1
    assert results[1] == {"error": "the bell is cracked"}
    assert results[2] == {"error": "The id 1000000 is not valid."}
    assert [result["rung"] for result in results[-2:]] == [1, 2]
    # Sent again, what was numbered acts once; what was not acts again.
    again = bell.post("/steps", steps=[steps[0], steps[-1]])["results"]
    assert again == [results[0], results[-1]]

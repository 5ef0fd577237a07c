"""Replies taken whole, of which later turns see a part; an environment that counts rounds, so that
the last reply is the answer; and its report on each episode, which ends in the row."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.backends.conftest import leases
from tests.backends.rollout.rounds_world import RoundsWorld
from tests.backends.rollout.test_job_rollout import CONFIG, MODULE, PLACEMENT
from tests.backends.rollout.test_turns import Script, World, played, rules, turns
from tests.support.prompts import prompt as job_prompt

from agentc.runtime.contracts.artifacts import check_artifact
from agentc_backends.agents.common.prompts import (
    agent_message,
    opening_messages,
    read_prompt,
    reply_text,
)
from agentc_backends.clients import EnvironmentCalls, EnvironmentClient
from agentc_backends.environments.server.inside import InsideEnvironment

WORLD = str(Path(__file__).parent / "rounds_world.py")
TEXT = job_prompt(
    reply_format="text",
    system="Ask, then answer.",
    observation_prefix="",
    output_marker="OUTPUT:",
)


def prompt(**changes: Any) -> Any:
    return read_prompt({**TEXT, **changes})


@pytest.mark.parametrize(
    ("reply", "seen", "left"),
    [
        ("thought OUTPUT: A\nB", " A\nB", ""),
        ("OUTPUT:\nA\n", "\nA\n", ""),
        ("OUTPUT: A OUTPUT: zzz", " A ", "OUTPUT: zzz"),
        # Oracle O7: what follows the marker, up to the next one, blanks and all.
        (
            "thought OUTPUT: I WANT TO ANSWER: A I WANT TO ANSWER: B OUTPUT: zzz",
            " I WANT TO ANSWER: A I WANT TO ANSWER: B ",
            "OUTPUT: zzz",
        ),
        ("thought OUTPUT:", "", ""),
    ],
)
def test_what_follows_the_marker_is_seen_and_what_is_before_is_kept(
    reply: str, seen: str, left: str
) -> None:
    """Of what follows the next marker nothing is kept, nor trained."""
    whole = reply.removesuffix(left)
    assert agent_message(prompt(), reply) == {"role": "assistant", "content": seen, "raw": whole}


def test_a_reply_without_the_marker_is_seen_whole() -> None:
    whole = {"role": "assistant", "content": "output: A"}
    assert agent_message(prompt(), "output: A") == whole
    without = prompt(output_marker=None)
    assert agent_message(without, "a OUTPUT: b") == {**whole, "content": "a OUTPUT: b"}


@pytest.mark.parametrize("reply_format", ["text", "action_only", "react", "react_inline"])
@pytest.mark.parametrize("thought", [None, "Hm."])
def test_experts_put_their_thought_before_the_marker(
    reply_format: str, thought: str | None
) -> None:
    form = prompt(reply_format=reply_format)
    said = reply_text(form, "go", thought)
    seen = "go" if reply_format in ("text", "action_only") else "Action: go"
    assert said == ("" if thought is None else "Hm.\n") + f"OUTPUT: {seen}"
    assert agent_message(form, said)["content"] == f" {seen}"


def test_a_plain_text_expert_says_its_action() -> None:
    assert reply_text(prompt(output_marker=None), "a\nb") == "a\nb"


def test_later_turns_see_what_follows_the_marker() -> None:
    script = Script("plan one OUTPUT: first\nline", "", "plan two\nOUTPUT: last")
    world = World(limit=3)
    what = rules(reply_format="text", output_marker="OUTPUT:", observation_prefix="")
    row = played(script, world, turns(max_turns=10), what)
    assert world.actions == ["first\nline", "", "last"]
    assert script.shown[2] == ["I", "OK", "TASK", " first\nline", "o1", "", "o2"]
    assert [m.get("raw") for m in row["messages"][3::2]] == [
        "plan one OUTPUT: first\nline",
        None,
        "plan two\nOUTPUT: last",
    ]
    # An empty reply is an empty action: the environment's rounds are the stage's turns.
    assert (row["turns"], row["invalid"], row["end"]) == (3, 0, "failure")


def test_an_instruction_of_the_system_stands_before_the_task() -> None:
    messages = opening_messages(prompt(), "TASK")
    assert messages == [
        {"role": "system", "content": "Ask, then answer."},
        {"role": "user", "content": "TASK"},
    ]


@pytest.fixture
def rounds(share: Any) -> Any:
    return share("environment", [WORLD, "--port", "0", "--ready-file", "READY"], "world-token")


def config(**changes: Any) -> dict[str, Any]:
    told = {"on_invalid": "observe", "invalid_message": "", "no_action": "whole_reply"}
    return {**CONFIG, "limit": None, "attempts": 8, "max_turns": 10, "prompt": TEXT, **told} | {
        "action_span": "rest",
        **changes,
    }


def test_the_last_reply_of_an_environment_that_counts_rounds_is_the_answer(
    run_job: Any, policy: Any, rounds: Any, tmp_path: Path
) -> None:
    served = leases(policy("marked"), rounds)
    done = run_job(MODULE, config(), placement=PLACEMENT, leases=served)
    assert done.code == 0, done.output
    check_artifact("Trajectories", done.data, {"reward_range": [0, 1]}, {}, done.facts)
    rows = done.rows("trajectories.jsonl")
    assert len(rows) == 16
    assert {row["report"]["answer_from"] for row in rows} == {"marker", "limit"}
    for row in rows:
        last = row["messages"][-1]
        report = row["report"]
        assert "hidden" not in report
        assert row["end"] in ("success", "failure")
        assert row["turns"] <= 3
        assert (row["turns"] == 3) >= (report["answer_from"] == "limit")
        if report["answer_from"] == "limit":
            assert report["answer"] == last["content"].strip()
        assert row["reward"] == report["verdicts"].count("pass") / 4
    assert any("raw" in m for row in rows for m in row["messages"])
    assert any("\n" in row["report"]["answer"] for row in rows)


def test_reports_outlive_a_kill(run_job: Any, policy: Any, rounds: Any, tmp_path: Path) -> None:
    """Half of the journal is kept: its rows, with their reports and raw texts, are taken over."""
    served = leases(policy("marked"), rounds)
    staging = tmp_path / "staging"
    first = run_job(MODULE, config(), placement=PLACEMENT, leases=served, staging=staging)
    whole = (first.data / "trajectories.jsonl").read_bytes()
    journal = staging / "work" / "episodes.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:8]))
    again = run_job(MODULE, config(), placement=PLACEMENT, leases=served, staging=staging)
    assert again.facts["resumed"] == 8
    assert (again.data / "trajectories.jsonl").read_bytes() == whole


def test_a_report_over_http_is_that_of_an_environment_in_the_process(rounds: Any) -> None:
    async def walk(calls: EnvironmentCalls) -> list[Any]:
        number = await calls.create()
        return [
            await calls.reset(number, "ding"),
            await calls.step(number, "hello"),
            await calls.step(number, "ANSWER: in"),
        ]

    async def there() -> list[Any]:
        async with EnvironmentClient(rounds.lease["url"], rounds.lease["token"]) as calls:
            return await walk(calls)

    here = asyncio.run(walk(InsideEnvironment(RoundsWorld)))
    assert here == asyncio.run(there())
    assert [each.report for each in here] == [
        None,
        None,
        {"verdicts": ["fail", "pass", "pass", "fail"], "answer": "in", "answer_from": "marker"},
    ]
    assert [each.step_limit for each in here] == [3, None, None]

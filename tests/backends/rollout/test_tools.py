"""`reply_format: tools`: an action is a call of a function, from the plan of an expert to the row
of an episode that a real model server's replies were played in."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.backends.conftest import leases
from tests.backends.rollout.test_job_rollout import CONFIG, MODULE, PLACEMENT
from tests.support.prompts import prompt

from agentc.runtime.contracts.artifacts import check_artifact
from agentc.runtime.contracts.row_contracts import message_findings
from agentc_backends.agents.common.actions import parse_action
from agentc_backends.agents.common.prompts import ACT, EpisodePrompt, opening_messages, reply_text

PROMPT = EpisodePrompt("Craft.", None, (), "tools", observation_prefix="")
CALL = reply_text(PROMPT, "get 1 oak log")


def named(name: str, arguments: Any) -> str:
    body = json.dumps({"name": name, "arguments": arguments})
    return f"<tool_call>\n{body}\n</tool_call>"


@given(st.text().map(str.strip).filter(bool), st.none() | st.sampled_from(["I need it.", "Two\n2"]))
def test_what_is_written_is_read(action: str, thought: str | None) -> None:
    reply = reply_text(PROMPT, action, thought)
    assert parse_action(reply, "tools") == action
    assert reply.startswith(thought or "<tool_call>")


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "get 1 oak log",
        "Action: get 1 oak log",
        CALL[:-1],  # not whole
        CALL + CALL,
        CALL + "<tool_call>",
        CALL.replace('"}}', '"}'),
        named("look", {"action": "get 1 oak log"}),
        named("act", {"action": 1}),
        named("act", {"action": " "}),
        named("act", {"action": "get 1 oak log", "times": 2}),
        named("act", {"do": "get 1 oak log"}),
        named("act", ["get 1 oak log"]),
    ],
)
def test_what_is_no_call_of_the_function_is_no_action(reply: str) -> None:
    assert parse_action(reply, "tools") is None


def test_functions_open_the_conversation() -> None:
    first, task = opening_messages(PROMPT, "TASK")
    assert first == {"role": "system", "content": "", "tools": [ACT]}
    assert task == {"role": "user", "content": "Craft.\n\nTASK"}


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, []),
        ({"tools": []}, ["message 0: tools are functions, only of a leading system message"]),
        ({"tools": ["act"]}, ["message 0: tools are functions, only of a leading system message"]),
        ({"second": "tool"}, ["message 1: a result of a function, where none is called"]),
    ],
)
def test_rows_have_results_where_functions_are_called(
    changes: dict[str, Any], found: list[str]
) -> None:
    messages = [
        {"role": "system", "content": "", "tools": changes.get("tools", [ACT])},
        {"role": changes.get("second", "user"), "content": "TASK"},
        {"role": "assistant", "content": CALL},
        {"role": "tool", "content": "Got 1 oak log"},
    ]
    assert list(message_findings(messages)) == found


def test_a_side_of_a_pair_has_results_too() -> None:
    side = [{"role": "assistant", "content": CALL}, {"role": "tool", "content": "Got 1 oak log"}]
    assert not [*message_findings([*side, side[0]], first="assistant")]
    assert [*message_findings([*side, side[1]], first="assistant")] == [
        "message 2: a result of a function, where none is called"
    ]


def test_episodes_over_a_model_server(run_job: Any, share: Any, environment: Any) -> None:
    rules = [
        {"turn": 0, "match": "<tool_response>", "reply": "results come as those of the user"},
        {"turn": 0, "reply": "Look.\n" + reply_text(PROMPT, "inventory")},
        {"turn": 1, "match": "^<tool_response>\nInventory", "reply": CALL[:-1]},
        {"turn": 2, "match": "Invalid format", "reply": "get 1 oak log"},
        {"turn": 3, "reply": reply_text(PROMPT, "fly away")},
    ]
    words = ["-m", "agentc_backends.servers.scripted.job_serve", "--served-name", "policy"]
    words += ["--rules", json.dumps(rules), "--port", "0", "--ready-file", "READY"]
    policy = share("policy", words, "policy-token", model="policy", log="policy.log")
    functions = prompt(instruction="Craft.", reply_format="tools", observation_prefix="")
    config = {**CONFIG, "prompt": functions, "limit": 1, "attempts": 1, "max_turns": 4}
    config["decode"] = {**CONFIG["decode"], "max_tokens": 256}
    done = run_job(MODULE, config, placement=PLACEMENT, leases=leases(policy, environment))
    assert done.code == 0, done.output
    check_artifact("Trajectories", done.data, {"reward_range": [0, 1]}, {}, done.facts)
    [row] = done.rows("trajectories.jsonl")
    system, task, *turns = row["messages"]
    assert system == {"role": "system", "content": "", "tools": [ACT]}
    assert (task["role"], row["prompt_length"], row["invalid"]) == ("user", 2, 2)
    assert [turn["role"] for turn in turns] == ["assistant", "tool"] * 3 + ["assistant"]
    # Replies are the model's letters, none of them read and written anew.
    assert [turn["content"] for turn in turns[::2]] == [rule["reply"] for rule in rules[1:]]
    assert turns[1]["content"].startswith("Inventory")
    assert [turn["content"] for turn in turns[3::2]] == ["Invalid format."] * 2
    assert "fly away" in row["last_observation"]

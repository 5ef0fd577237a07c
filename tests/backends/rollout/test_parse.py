"""Finding the action in a reply: by our rule, by ETO's (oracle E2), and by Agent-R's."""

from __future__ import annotations

import re
from typing import Any

import pytest

from agentc_backends.agents.common.actions import parse_action, without_turn_numbers
from agentc_backends.agents.common.prompts import EpisodePrompt, reply_text


@pytest.mark.parametrize(
    ("reply", "action"),
    [
        ("Thought: I need planks.\nAction: craft 4 oak planks", "craft 4 oak planks"),
        ("Action: get 1 oak log", "get 1 oak log"),
        ("Action:get 1 oak log", "get 1 oak log"),
        ("  Thought: x\n  Action:   inventory  \n\nObservation: you have", "inventory"),
        ("Thought: the Action: mark is last\nAction: inventory", "inventory"),
        ("Thought: on one line. Action: inventory", "inventory"),
        ("Thought: Action: a\nAction: search[b]", "search[b]"),
        ("Action: one\nAction: two", "one"),
        ("I will look around.", None),
        ("Thought: x\nAction:", None),
        ("Thought: x\nAction:   \nget 1 log", None),
        ("", None),
    ],
)
def test_line_takes_the_first_action_line(reply: str, action: str | None) -> None:
    assert parse_action(reply, "react") == action


@pytest.mark.parametrize(
    ("reply", "space", "action"),
    [
        ("Action:click[x]", "required", None),
        ("Action:click[x]", "optional", "click[x]"),
        ("Thought: Action: a\nAction: search[b]", "required", "a\nAction: search[b]"),
        ("Thought: x\nAction: look\nObservation: y", "required", "look\nObservation: y"),
        ("Action: ", "required", None),
    ],
)
def test_rest_is_the_rule_of_the_original_code(reply: str, space: Any, action: str | None) -> None:
    assert parse_action(reply, "react", span="rest", space=space) == action


def released_search_action(reply: str) -> str:
    """What Agent-R's search acts on, told again from its code."""
    for mark in ("Action 1:", "Action:"):
        if mark in reply:
            return re.sub(r"^\d+\.\s*", "", reply.split(mark)[-1].strip())
    return reply.split("\n")[-1]


AGENT_R = [
    ("Thought 1: x\nAction 1: search[a]", "search[a]"),
    ("Action 1: 2. go north", "go north"),
    ("Action: a\nAction: b", "b"),
    ("Action 1: a\nAction: b", "a\nAction: b"),
    ("Action: b\nAction 1: a", "a"),
    ("Action 1: a\nAction 1: b", "b"),
    ("Action:\n1. look", "look"),
    ("Action 2: look", None),
    ("Thought: I look around", None),
    ("Action: 1.", None),
]


@pytest.mark.parametrize(("reply", "action"), AGENT_R)
def test_last_with_numbered_turns_is_the_rule_of_agent_rs_search(
    reply: str, action: str | None
) -> None:
    assert parse_action(reply, "react", span="last", numbered=True) == action
    if action is not None:
        assert released_search_action(reply) == action


@pytest.mark.parametrize(
    ("reply", "action"),
    [
        ("Action: a\nAction: b", "b"),
        ("Action: 2. go north", "2. go north"),
        ("Action: a\nand so on", "a\nand so on"),
        ("Action 1: search[a]", None),
        ("look", None),
        ("Action:", None),
    ],
)
def test_after_last_is_the_rule_of_agent_rs_evaluation(reply: str, action: str | None) -> None:
    assert parse_action(reply, "react", span="after_last") == action
    if action is not None:
        assert reply.split("Action:")[-1].strip() == action


def test_turn_numbers_are_dropped_as_agent_rs_search_keeps_replies() -> None:
    assert without_turn_numbers(" Thought 1: x\nAction 1: y ") == "Thought: x\nAction: y"
    assert without_turn_numbers("Thought 2: x\nAction 11: y") == "Thought 2: x\nAction 11: y"


@pytest.mark.parametrize(
    ("reply", "span", "action"),
    [
        ("\n get 1 log \n then more", "line", "get 1 log"),
        ("get 1 log\nthen more", "rest", "get 1 log\nthen more"),
        (" \n ", "line", None),
    ],
)
def test_action_only_takes_the_reply_itself(reply: str, span: Any, action: str | None) -> None:
    assert parse_action(reply, "action_only", span=span) == action


@pytest.mark.parametrize("reply_format", ["react", "action_only"])
@pytest.mark.parametrize("thought", [None, "I have Action: in mind", "plain"])
def test_what_the_expert_writes_parses_back(reply_format: Any, thought: str | None) -> None:
    prompt = EpisodePrompt("", None, (), reply_format)
    text = reply_text(prompt, "craft 1 stick using 2 planks", thought)
    assert parse_action(text, reply_format) == "craft 1 stick using 2 planks"

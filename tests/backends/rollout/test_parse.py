"""Finding the action in a reply, by our rule and by that of ETO's code (oracle E2)."""

from __future__ import annotations

from typing import Any

import pytest

from agentc_backends.rollout_react.parse import parse_action
from agentc_backends.rollout_react.prompt import EpisodePrompt, reply_text


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

"""Loops of actions: blocks that are done again at once, each counted at its shortest length."""

from __future__ import annotations

from typing import Any

import pytest

from agentc_backends.agents.evaluate.episode_scores import LoopRules, episode_actions, repeats

RULES: dict[str, Any] = {
    "times": 2,
    "longest": 10,
    "action_span": "line",
    "action_space": "optional",
    "no_action": "invalid",
    "reply_format": "react",
}


@pytest.mark.parametrize(
    ("actions", "counted"),
    [
        ("abcd", {}),
        ("aba", {}),
        ("aabb", {1: 2}),
        ("aaaa", {1: 3}),  # not two times `aa` as well
        ("abab", {2: 1}),
        ("ababab", {2: 2}),
        ("xabcabcy", {3: 1}),
        ("aabaab", {1: 2, 3: 1}),
        ("abababa", {2: 2}),  # the last `a` makes no block of its own
        ("", {}),
    ],
)
def test_blocks_are_counted_once(actions: str, counted: dict[int, int]) -> None:
    assert dict(repeats(list(actions), LoopRules(**RULES))) == counted


def test_the_rules_say_how_often_and_how_long() -> None:
    three = LoopRules(**{**RULES, "times": 3})
    assert dict(repeats(list("aabbb"), three)) == {1: 2}
    short = LoopRules(**{**RULES, "longest": 2})
    assert not repeats(list("abcabc"), short)


def episode(*replies: str) -> dict[str, Any]:
    messages = [{"role": "user", "content": "Instruction"}, {"role": "assistant", "content": "OK"}]
    messages.append({"role": "user", "content": "Task"})
    for reply in replies:
        messages.append({"role": "assistant", "content": reply})
        messages.append({"role": "user", "content": "Seen"})
    return {"messages": messages[:-1], "prompt_length": 3}


def test_actions_are_compared_and_not_the_thoughts_before_them() -> None:
    row = episode("Thought: first\nAction: look", "Thought: again\nAction: look ")
    assert episode_actions(row, LoopRules(**RULES)) == ["look", "look"]


def test_a_reply_without_an_action_stands_for_itself() -> None:
    row = episode("nonsense", "nonsense", "other")
    assert episode_actions(row, LoopRules(**RULES)) == ["nonsense", "nonsense", "other"]


def test_an_empty_action_is_one_where_whole_replies_are_actions() -> None:
    """The environment is given the empty text both times."""
    rules = LoopRules(**{**RULES, "no_action": "whole_reply", "action_span": "after_last"})
    row = episode("Thought: one\nAction:", "Thought: two\nAction:")
    assert episode_actions(row, rules) == ["", ""]

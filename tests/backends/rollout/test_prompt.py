"""The leading messages of an episode (oracle E8) and the shapes that are refused."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.prompts import prompt

from agentc_backends.agents.common.prompts import PromptError, opening_messages, read_prompt

EXAMPLE = [
    {"role": "user", "content": "t"},
    {"role": "assistant", "content": "a1"},
    {"role": "user", "content": "o1"},
    {"role": "assistant", "content": "a2"},
]


def config(**changes: Any) -> dict[str, Any]:
    return prompt(
        **{"instruction": "INST", "acknowledgement": "OK", "examples": [EXAMPLE], **changes}
    )


def laid_out(**changes: Any) -> list[tuple[str, str]]:
    messages = opening_messages(read_prompt(config(**changes)), "TASK")
    return [(message["role"][0], message["content"]) for message in messages]


def test_e8_one_example() -> None:
    assert laid_out() == [
        ("u", "INST"),
        ("a", "OK"),
        ("u", "t"),
        ("a", "a1"),
        ("u", "o1"),
        ("a", "a2"),
        ("u", "TASK"),
    ]


def test_without_an_acknowledgement_the_instruction_joins_the_first_user_message() -> None:
    assert laid_out(acknowledgement=None, examples=[]) == [("u", "INST\n\nTASK")]
    merged = laid_out(acknowledgement=None)
    assert merged[0] == ("u", "INST\n\nt")
    assert merged[-1] == ("u", "TASK")
    assert laid_out(acknowledgement=None, examples=[], instruction="") == [("u", "TASK")]


def test_a_system_message_comes_before_all_others() -> None:
    assert laid_out(system="SYS", examples=[]) == [("s", "SYS"), *laid_out(examples=[])]
    bare = laid_out(system="SYS", acknowledgement=None, examples=[])
    assert bare == [("s", "SYS"), ("u", "INST\n\nTASK")]


def test_an_episode_never_changes_the_prompt_object() -> None:
    prompt = read_prompt(config(acknowledgement=None))
    opening_messages(prompt, "one")[0]["content"] += " spoiled"
    assert opening_messages(prompt, "two")[0]["content"] == "INST\n\nt"


@pytest.mark.parametrize(
    "example", [[], EXAMPLE[:3], EXAMPLE[1:], [EXAMPLE[0], EXAMPLE[2], EXAMPLE[1]]]
)
def test_an_example_that_does_not_alternate_is_refused(example: list[dict[str, str]]) -> None:
    with pytest.raises(PromptError, match="example 2 must alternate"):
        read_prompt(config(examples=[EXAMPLE, example]))


def test_an_unknown_reply_format_is_refused_with_the_known_ones() -> None:
    with pytest.raises(PromptError, match="action_only"):
        read_prompt(config(reply_format="json"))

"""Markdown, thinking blocks and JSON around an action: it is the clean text, or the reply is
invalid; never an action with marks in it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agentc_backends.agents.common.actions import ACTION_SPANS, last_line, parse_action
from agentc_backends.agents.common.episode import EpisodeRules
from agentc_backends.agents.common.prompts import EpisodePrompt
from agentc_backends.agents.rollout.play import TurnRules, turn_action

WRAPPED = (
    "**Thought:** it is open.\n**Action:** {}",
    "**Thought**: it is open.\n**Action**: {}",
    "**Action: {}**",
    "**Thought: it is open. Action: {}**",
    "***Action:*** {}",
    "*Action:* {}",
    "*Action: {}*",
    "_Action:_ {}",
    "__Action:__ {}",
    "**Action:**{}",
    "**Action:** **{}**",
    "**Action:** `{}`",
    "Action:** {}",
    "Action: `{}`",
    "Action: ``{}``",
    "Action: ```{}```",
    "Action: *{}*",
    "Action: **{}**",
    "Action: ***{}***",
    "Action: **`{}`**",
    "Action: ~~{}~~",
    "Action: <action>{}</action>",
    "Action: <b>{}</b>",
    "<b>Action:</b> {}",
    "<strong>Action: {}</strong>",
    "`Action: {}`",
    "`Action:` {}",
    "> Action: {}",
    "> Thought: it is open.\n> Action: {}",
    "> **Action:** {}",
    "- Action: {}",
    "* Action: {}",
    "* **Action:** {}",
    "1. Thought: it is open.\n2. Action: {}",
    "### Action: {}",
    "## **Action:** {}",
    "```\nAction: {}\n```",
    "```text\nThought: it is open.\nAction: {}\n```",
    "Action:\n```\n{}\n```",
    "Action: ```\n{}\n```",
    "Action:\n```text\n{}\n```",
    '{{"thought": "it is open", "action": "{}"}}',
    '```json\n{{"action": "{}"}}\n```',
    'Action: {{"action": "{}"}}',
    '{{"reply": "Action: {}"}}',
    '{{"thought": "it is open", "reply": "Action: {}',
    "<think>\nAction: go south would be wrong.\n</think>\nAction: {}",
    "Action: go south would be wrong.\n</think>\nAction: {}",
    "<think>a</think><think>Action: go south</think>\n**Action:** {}",
    "<thinking>Action: go south</thinking> Action: {}",
    "[THINK]Action: go south[/THINK]Action: {}",
    "◁think▷Action: go south◁/think▷Action: {}",
    "Thought: x\n<think>Action: go south</think>\nAction: {}",
)
WHOLE = (
    "{}", "**{}**", "`{}`", "```\n{}\n```", "```text\n{}\n```", "> {}", "- {}", "# {}",
    '{{"action": "{}"}}', '```json\n{{"thought": "a", "action": "{}"}}\n```', "<action>{}</action>",
    "<think>go south</think>\n{}", "go south is wrong.\n</think>\n\n**{}**",
)  # fmt: skip

MARKS = set("*_`~")
"""An action that has these in it is not wrapped in the same ones: Markdown could not be read."""

LETTER = st.sampled_from("abcXYZ019 .,;()[]'-*`_/=+")
CLEAN = (
    st.text(LETTER, min_size=1)
    .map(str.strip)
    # No mark at an end, none that is half a pair, and no bullet: those are marks of Markdown.
    .filter(lambda text: text and text[0] not in "*`_~>#-+" and text[-1] not in "*`_~")
    .filter(lambda text: not any(mark in text for mark in ("**", "__", "``", "~~")))
    .filter(lambda text: not text[0].isdigit())
)


@pytest.mark.parametrize("span", ACTION_SPANS)
@pytest.mark.parametrize("wrapping", WRAPPED)
def test_marks_around_an_action_are_no_part_of_it(wrapping: str, span: Any) -> None:
    for action in ("click[Buy Now]", "pour 2 * 3 into beaker_1", "open `a` and `b`"):
        if not set("*_`") & set(action) & set(wrapping):
            assert parse_action(wrapping.format(action), "react", span=span) in (action, None)
    if not wrapping.startswith(
        ("Action:\n", "Action: ```\n", '{{"reply', '{{"thought": "it is ope')
    ):
        assert parse_action(wrapping.format("go north"), "react", span=span) == "go north"


@given(CLEAN, st.sampled_from(WRAPPED), st.sampled_from(ACTION_SPANS))
def test_no_wrapping_changes_an_action(action: str, wrapping: str, span: Any) -> None:
    assume(not MARKS & set(action) & set(wrapping))
    assert parse_action(wrapping.format(action), "react", span=span) in (action, None)


@given(CLEAN, st.sampled_from(WHOLE), st.sampled_from(("line", "rest")))
def test_nor_one_that_is_the_whole_reply(action: str, wrapping: str, span: Any) -> None:
    assume(not MARKS & set(action) & set(wrapping))
    assert parse_action(wrapping.format(action), "action_only", span=span) in (action, None)


@pytest.mark.parametrize("wrapping", WHOLE)
def test_a_whole_reply_is_freed_of_its_marks(wrapping: str) -> None:
    for span in ("line", "rest"):
        assert parse_action(wrapping.format("go north"), "action_only", span=span) == "go north"


@pytest.mark.parametrize("span", ACTION_SPANS)
@pytest.mark.parametrize(
    "action",
    [
        "search[5 * 3 inch *new* frame]",
        "use `hammer` on nail",
        'say "hello"',
        "'hello'",
        "put beaker_1 in/on cup_2",
        "*",
        "a*",
        "-1",
        "x = y**2",
    ],
)
def test_marks_of_the_action_itself_survive(action: str, span: Any) -> None:
    assert parse_action(f"Thought: x\nAction: {action}", "react", span=span) == action


CODE = "```python\ndef f(**kw):\n    return `a` * __b__\n```"


@pytest.mark.parametrize(
    ("reply", "action"),
    [
        (CODE, CODE),
        (f"**I WANT TO ANSWER:** {CODE}", f"**I WANT TO ANSWER:** {CODE}"),
        ("<div><b>x</b></div>", "<div><b>x</b></div>"),
        (f"<think>Action: a</think>\n{CODE}", CODE),
        (f"a thought\n</think>\n{CODE}", CODE),
        ("<think>never closed", ""),
        ("print('<think>')", "print('<think>')"),
    ],
)
def test_a_text_keeps_all_but_a_leading_thinking_block(reply: str, action: str) -> None:
    assert parse_action(reply, "text") == action


@pytest.mark.parametrize("reply_format", ["react", "react_inline", "action_only", "tools"])
@pytest.mark.parametrize("span", ACTION_SPANS)
@pytest.mark.parametrize(
    "reply",
    [
        "<think>Action: go south",
        "<think>\nAction: go south\n</think>",
        '<think><tool_call>\n{"name": "act", "arguments": {"action": "a"}}\n</tool_call></think>',
        "Action: go south</think>",
    ],
)
def test_a_reply_that_is_all_thinking_is_invalid(reply: str, reply_format: Any, span: Any) -> None:
    assert parse_action(reply, reply_format, span=span) is None


@pytest.mark.parametrize(
    ("reply", "action"),
    [
        ("**go north**", "go north"),
        ("<think>go south</think>go north", "go north"),
        ("**Action:**", ""),
        ("**Action**:", ""),
        ("Action:", ""),
        ("<think>Action: a</think>\n`look`", "look"),
    ],
)
def test_a_reply_that_is_an_action_as_a_whole_is_clean_too(reply: str, action: str) -> None:
    prompt = EpisodePrompt("", None, (), "react")
    rules = EpisodeRules(
        prompt=prompt, split="test", reward_range=(0, 1), reward_kind="latest", success_at=1.0
    )
    turns = TurnRules(
        max_turns=1, on_invalid="observe", on_overflow="end", invalid_message="",
        action_span="after_last", action_space="optional", no_action="whole_reply",
    )  # fmt: skip
    assert turn_action(rules, turns, reply) == action


def test_the_last_line_is_clean_too() -> None:
    assert last_line("I look.\n**go north**") == "go north"
    assert last_line("go north\n<think>go south</think>") == "go north"
    assert last_line("```\ngo north\n```") == "go north"

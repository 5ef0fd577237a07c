"""The messages of an episode, made in one place so that training and evaluation cannot drift.

Used by rollouts and by the expert: both open an episode with the same leading messages and wrap
observations and replies alike. Layout: user instruction, assistant acknowledgement, in-context
examples as alternating turns, then the user's task (ETO, `icl_format: conversation`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

Message: TypeAlias = dict[str, Any]
ReplyFormat: TypeAlias = Literal["react", "react_inline", "action_only"]
REPLY_FORMATS: tuple[ReplyFormat, ...] = ("react", "react_inline", "action_only")
OBSERVATION_PREFIX = "Observation: "


class PromptError(ValueError):
    """The prompt object cannot be laid out as an alternating conversation."""


@dataclass(frozen=True, slots=True)
class EpisodePrompt:
    """A prompt object, checked: what precedes the task, and how replies look."""

    instruction: str
    acknowledgement: str | None
    examples: tuple[tuple[Message, ...], ...]
    reply_format: ReplyFormat


def read_prompt(config: Mapping[str, Any]) -> EpisodePrompt:
    """The prompt in a job's `config["prompt"]`. Raises PromptError when it has no proper shape."""
    reply_format = config["reply_format"]
    if reply_format not in REPLY_FORMATS:
        raise PromptError(f"reply_format is {reply_format!r}; it can be {', '.join(REPLY_FORMATS)}")
    examples = tuple(
        tuple({"role": str(m["role"]), "content": str(m["content"])} for m in example)
        for example in config["examples"]
    )
    for number, example in enumerate(examples, start=1):
        _check_alternation(example, number)
    return EpisodePrompt(
        instruction=str(config["instruction"]),
        acknowledgement=config["acknowledgement"],
        examples=examples,
        reply_format=cast(ReplyFormat, reply_format),
    )


def opening(prompt: EpisodePrompt, task: str) -> list[Message]:
    """The messages before the agent's first reply; the last one holds the task.

    Without an acknowledgement the instruction has no turn of its own: it goes before the text of
    the first user message, with an empty line between, so that user and assistant still alternate.
    """
    messages: list[Message] = []
    for example in prompt.examples:
        messages += [dict(message) for message in example]
    messages.append({"role": "user", "content": task})
    if prompt.acknowledgement is not None:
        head = [("user", prompt.instruction), ("assistant", prompt.acknowledgement)]
        return [{"role": role, "content": content} for role, content in head] + messages
    if prompt.instruction:
        messages[0]["content"] = f"{prompt.instruction}\n\n{messages[0]['content']}"
    return messages


def observation_message(observation: str) -> Message:
    """What the environment answered to an action, as the agent sees it."""
    return {"role": "user", "content": OBSERVATION_PREFIX + observation}


def reply_text(prompt: EpisodePrompt, action: str, thought: str | None = None) -> str:
    """A reply in the prompt's format; `parse_action` gets `action` back from it."""
    if prompt.reply_format == "action_only":
        return action
    if thought is None:
        return f"Action: {action}"
    if prompt.reply_format == "react_inline":
        return f"Thought: {thought}. Action: {action}"
    return f"Thought: {thought}\nAction: {action}"


def _check_alternation(example: Sequence[Message], number: int) -> None:
    roles = [message["role"] for message in example]
    expected = ["user", "assistant"] * (len(roles) // 2)
    if not roles or roles != expected:
        raise PromptError(
            f"in-context example {number} must alternate user and assistant, starting with user "
            f"and ending with assistant; its roles are {', '.join(roles) or 'none'}"
        )

"""The messages of an episode, made in one place so that training and evaluation cannot drift.

Layout: system message if any, user instruction, assistant acknowledgement, in-context examples as
alternating turns, then the user's task (ETO, `icl_format: conversation`). Rollouts and the expert
open episodes and wrap observations and replies by the same functions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, cast

from agentc_backends.agents.common.failures import FatalError
from agentc_backends.data.chat.tool_calls import CALL_OPENS, call_text, read_reply

Message: TypeAlias = dict[str, Any]
ReplyFormat: TypeAlias = Literal["react", "react_inline", "action_only", "text", "tools"]
REPLY_FORMATS: tuple[ReplyFormat, ...] = ("react", "react_inline", "action_only", "text", "tools")
OBSERVATION_PREFIX = "Observation: "
_SEEN = ("role", "content", "tools")
_FUNCTION, _ARGUMENT = "act", "action"

ACT: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": _FUNCTION,
        "description": "Does one action and gives what it leads to.",
        "parameters": {
            "type": "object",
            "properties": {_ARGUMENT: {"type": "string", "description": "The action."}},
            "required": [_ARGUMENT],
        },
    },
}
"""The function through which an agent acts under `reply_format: tools`. Another text would be
another prompt: who changes it raises the versions of those who play episodes."""


class PromptError(FatalError):
    """The prompt object cannot be laid out as an alternating conversation."""


@dataclass(frozen=True, slots=True)
class EpisodePrompt:
    """A prompt object, checked: what precedes the task, and how replies look."""

    instruction: str
    acknowledgement: str | None
    examples: tuple[tuple[Message, ...], ...]
    reply_format: ReplyFormat
    system: str | None = None
    observation_prefix: str = OBSERVATION_PREFIX
    output_marker: str | None = None
    memory: Literal["all", "last"] = "all"

    @property
    def answered_by(self) -> str:
        """Who says what the environment answered: the `user`, or the function that was called."""
        return "tool" if self.reply_format == "tools" else "user"


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
        system=config["system"],
        observation_prefix=config["observation_prefix"],
        output_marker=config["output_marker"],
        memory=config["memory"],
    )


def opening_messages(prompt: EpisodePrompt, task: str) -> list[Message]:
    """The messages before the agent's first reply; the last one holds the task.

    Without an acknowledgement the instruction has no turn of its own: it goes before the text of
    the first user message, with an empty line between, so that user and assistant still alternate.
    """
    system = [] if prompt.system is None else [_message("system", prompt.system)]
    if prompt.reply_format == "tools":
        # Rows carry functions in their first message, which is empty where nothing else is said.
        system = [{**_message("system", prompt.system or ""), "tools": [ACT]}]
    messages: list[Message] = []
    for example in prompt.examples:
        messages += [dict(message) for message in example]
    messages.append(_message("user", task))
    if prompt.acknowledgement is not None:
        turns = _message("user", prompt.instruction), _message("assistant", prompt.acknowledgement)
        return [*system, *turns, *messages]
    if prompt.instruction:
        messages[0]["content"] = f"{prompt.instruction}\n\n{messages[0]['content']}"
    return system + messages


def observation_message(prefix: str, observation: str, role: str = "user") -> Message:
    """What the environment answered to an action, as the agent sees it: after the prompt's
    `observation_prefix`, by who says it (`EpisodePrompt.answered_by`)."""
    return _message(role, prefix + observation)


def model_messages(messages: Sequence[Mapping[str, Any]]) -> list[Message]:
    """A conversation as a model is shown it: texts and functions, without marks of training."""
    return [{name: m[name] for name in _SEEN if name in m} for m in messages]


def agent_message(prompt: EpisodePrompt, reply: str) -> Message:
    """A reply as the agent's message: `content` is what the environment and later turns see, the
    text between the first `output_marker` and the next, blanks and all; `raw`, the reply up to the
    next, is there where that is more. A reply without the marker is seen whole."""
    marker = prompt.output_marker
    if marker is None or marker not in reply:
        return _message("assistant", reply)
    thought, seen, *_ = reply.split(marker)
    return {**_message("assistant", seen), "raw": f"{thought}{marker}{seen}"}


def reply_text(prompt: EpisodePrompt, action: str, thought: str | None = None) -> str:
    """A reply in the prompt's format; `parse_action` gets `action` back from what `agent_message`
    shows of it. A thought stands before the `output_marker`, where there is one."""
    if prompt.output_marker is not None:
        seen = reply_text(replace(prompt, output_marker=None), action)
        before = "" if thought is None else f"{thought}\n"
        return f"{before}{prompt.output_marker} {seen}"
    if prompt.reply_format in ("action_only", "text"):
        return action
    if prompt.reply_format == "tools":
        call = action_call(action)
        return call if thought is None else f"{thought}\n{call}"
    if thought is None:
        return f"Action: {action}"
    if prompt.reply_format == "react_inline":
        return f"Thought: {thought}. Action: {action}"
    return f"Thought: {thought}\nAction: {action}"


def _message(role: str, content: str) -> Message:
    return {"role": role, "content": content}


def _check_alternation(example: Sequence[Message], number: int) -> None:
    roles = [message["role"] for message in example]
    expected = ["user", "assistant"] * (len(roles) // 2)
    if not roles or roles != expected:
        raise PromptError(
            f"in-context example {number} must alternate user and assistant, starting with user "
            f"and ending with assistant; its roles are {', '.join(roles) or 'none'}"
        )


def action_call(action: str) -> str:
    """The call that does an action, as a reply writes it."""
    return call_text(_FUNCTION, json.dumps({_ARGUMENT: action}, ensure_ascii=False))


def action_in_call(reply: str) -> str | None:
    """The action of the one call in a reply, stripped; None where there is no call or more than
    one, where it is not whole, of another function, or has other arguments than the action."""
    _, calls = read_reply(reply)
    if len(calls) != 1 or calls[0].name != _FUNCTION or reply.count(CALL_OPENS) > 1:
        return None
    arguments = json.loads(calls[0].arguments)
    action = arguments.get(_ARGUMENT)
    if len(arguments) != 1 or not isinstance(action, str):
        return None
    return action.strip() or None

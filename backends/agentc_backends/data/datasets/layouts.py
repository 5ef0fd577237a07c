"""The formats that published records have: conversations and pairs of preferences. README.md has a
table of their fields."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agentc.kinds.models import LayoutName
from agentc_backends.data.datasets.records import (
    FieldError,
    Fields,
    Ledger,
    MalformedError,
    OtherFormatError,
)
from agentc_backends.data.datasets.turns import (
    Message,
    TurnReader,
    assistant,
    user,
    with_system,
    with_tools,
)

PROMPTS = ("prompt", "query", "question", "input")
COMPLETIONS = ("completion", "response", "answer", "output")
_CHOSEN = ("chosen", "chosen_response")
_REJECTED = ("rejected", "rejected_response", "rejected_messages")
_SIDES = frozenset({*_CHOSEN, *_REJECTED})
_SCORES = (
    ("chosen_reward", "rejected_reward"),
    ("score_chosen", "score_rejected"),
    ("chosen_score", "rejected_score"),
)
_SPEAKER = re.compile(r"\n\n(Human|Assistant): ?")


@dataclass(frozen=True, slots=True)
class DataConversation:
    """`prompt_length` counts the messages before the first reply that is the record's own; None:
    those before the first reply."""

    messages: list[Message]
    prompt_length: int | None = None


@dataclass(frozen=True, slots=True)
class DataPair:
    """Two continuations of one prompt, with a score of each."""

    prompt: list[Message]
    chosen: list[Message]
    rejected: list[Message]
    scores: tuple[float, float]


def read_layout(
    fields: Fields, layout: LayoutName, reader: TurnReader
) -> DataConversation | DataPair:
    """What a record means in a format. Raises MalformedError where it has another shape, FieldError
    where it is plainly in another format or a field would be lost."""
    names = matching(fields)
    if layout not in names:
        if names:
            wanted = " or ".join(f"`format: {name}`" for name in names)
            raise OtherFormatError(
                f"is not in the format `{layout}`; {fields.listed()}", f"set {wanted}"
            )
        if (near := _near_format(fields)) is not None:
            raise near
        raise MalformedError(
            f"has no {_NEEDS[layout]}; {fields.listed()}",
            "convert the file to a format that dataset reads: "
            + "; ".join(f"`{name}` has {needs}" for name, needs in _NEEDS.items()),
        )
    return _READERS[layout](fields, reader)


def matching(fields: Fields) -> list[LayoutName]:
    """The formats that the fields of a record are of; a record with preferences is of none else."""
    if fields.among(_SIDES):
        return ["preference"]
    found: list[LayoutName] = []
    if fields.is_list("messages"):
        found.append("messages")
    if fields.is_list("conversations"):
        found.append("sharegpt")
    if fields.has("instruction") and fields.holds("output"):
        found.append("alpaca")
    elif not found and any(map(fields.has, PROMPTS)) and any(map(fields.holds, COMPLETIONS)):
        found.append("prompt_completion")
    return found


def _near_format(fields: Fields) -> FieldError | None:
    """The error of a record that holds conversations, or a piece of one, in a known wrapping."""
    for name in ("messages", "conversations"):
        if isinstance(text := fields.view(name), str) and fields.has(name):
            return FieldError(
                f"has a text under `{name}`, which needs a list of turns",
                "write the list itself, not JSON inside of quotes"
                if text.lstrip()[:1] == "["
                else f"write a list of turns under `{name}`",
            )
    if any(isinstance(fields.view(name), str) for name in ("role", "from")):
        return FieldError(
            f"is a turn, not a conversation; {fields.listed()}",
            "put the turns of a conversation into one object: "
            '`{"messages": [{"role": "user", "content": "..."}, ...]}`',
        )
    for name in fields.names():
        records = fields.view(name)
        first = records[0] if isinstance(records, list) and records else None
        if isinstance(first, dict) and matching(Fields(first, Ledger())):
            return FieldError(
                f"has records of its own in a list under `{name}`",
                f"make that list the whole file, such as by `jq .{name}`",
            )
    return None


_NEEDS: Mapping[LayoutName, str] = {
    "messages": "list of turns under `messages`",
    "sharegpt": "list of turns under `conversations`",
    "alpaca": "`instruction` and `output`",
    "prompt_completion": "`prompt` and `completion`",
    "preference": "`chosen` and `rejected`",
}


def _from_messages(fields: Fields, reader: TurnReader) -> DataConversation:
    return _whole(reader.messages(fields.take("messages"), "messages"), fields, reader)


def _from_sharegpt(fields: Fields, reader: TurnReader) -> DataConversation:
    return _whole(reader.messages(fields.take("conversations"), "conversations"), fields, reader)


def _from_alpaca(fields: Fields, reader: TurnReader) -> DataConversation:
    question = _instruction(fields)
    return _whole([*question, assistant(fields.take("output"))], fields, reader)


def _from_prompt_completion(fields: Fields, reader: TurnReader) -> DataConversation:
    name, prompt = fields.one_of(PROMPTS)
    before = [*_history(fields), *_messages(prompt, name, user, reader)]
    before = _complete(before, fields, reader)
    name = next(name for name in COMPLETIONS if fields.holds(name))
    return DataConversation(
        [*before, *_messages(fields.take(name), name, assistant, reader)], len(before)
    )


def _from_preference(fields: Fields, reader: TurnReader) -> DataPair:
    name, prompt = _pair_prompt(fields, reader)
    own, side = fields.one_of(_CHOSEN)
    other, rest = fields.one_of(_REJECTED)
    if not other:
        raise FieldError(f"has a `{own}` side and no `rejected` one")
    rejected = _side(rest, other, reader)
    if own:
        chosen = _side(side, own, reader)
    elif prompt and name in ("messages", "conversations"):
        # ms-swift: the conversation is the chosen one.
        if other == "rejected_messages":
            chosen, prompt, name = prompt, [], ""
        else:
            chosen, prompt = prompt[-1:], prompt[:-1]
    else:
        raise FieldError(f"has a `{other}` side and no `chosen` one")
    if not prompt or any(
        turns[:1] and turns[0]["role"] != "assistant" for turns in (chosen, rejected)
    ):
        chosen, rejected, shared = _without_prompt(chosen, rejected)
        if prompt and shared[-len(prompt) :] != prompt:
            raise FieldError(f"has a `{name}` that is not what both sides begin with")
        reader.ledger.unused.update([name] if prompt else [])
        prompt = shared
    prompt = _complete(_unmarked(prompt, "the prompt", mark=True), fields, reader)
    return DataPair(
        prompt,
        _unmarked(chosen, "a side", mark=False),
        _unmarked(rejected, "a side", mark=False),
        _scores(fields),
    )


_READERS: Mapping[LayoutName, Callable[[Fields, TurnReader], DataConversation | DataPair]] = {
    "messages": _from_messages,
    "sharegpt": _from_sharegpt,
    "alpaca": _from_alpaca,
    "prompt_completion": _from_prompt_completion,
    "preference": _from_preference,
}


def _whole(messages: list[Message], fields: Fields, reader: TurnReader) -> DataConversation:
    return DataConversation(_complete(messages, fields, reader))


def _complete(messages: list[Message], fields: Fields, reader: TurnReader) -> list[Message]:
    """The conversation with the system text and the functions that the record has for it."""
    system = fields.take("system")
    messages = with_system(messages, system)
    name, tools = fields.one_of(("tools", "functions"))
    return with_tools(messages, reader.tools(tools, name) if name else [])


def _history(fields: Fields) -> list[Message]:
    """LLaMA-Factory's `history`: earlier questions, each with its answer."""
    found: list[Message] = []
    entries = fields.take("history") or []
    for entry in entries if isinstance(entries, list) else [entries]:
        if not isinstance(entry, list) or len(entry) != 2:
            raise FieldError("has a `history` that is no list of [question, answer]")
        found += [user(entry[0]), assistant(entry[1])]
    return found


def _instruction(fields: Fields) -> list[Message]:
    instruction, extra = fields.take("instruction"), fields.take("input") or ""
    if not isinstance(extra, str) or not isinstance(instruction, str) or not instruction.strip():
        raise MalformedError("has no text under `instruction`, or something else under `input`")
    question = f"{instruction}\n\n{extra}" if extra.strip() else instruction
    return [*_history(fields), user(question)]


def _messages(
    value: Any, name: str, alone: Callable[[Any], Message], reader: TurnReader
) -> list[Message]:
    """A text as one message, or turns as they are written."""
    if isinstance(value, dict):
        value = [value]
    return reader.messages(value, name) if isinstance(value, list) else [alone(value)]


def _pair_prompt(fields: Fields, reader: TurnReader) -> tuple[str, list[Message]]:
    """What stands before both sides, with the name of its field; empty where the sides hold it."""
    if fields.has("instruction"):
        return "instruction", _instruction(fields)
    name, value = fields.one_of(
        ("prompt", "conversations", "messages", "question", "query", "input")
    )
    prompt = _messages(value, name, user, reader) if name else []
    return name, [*_history(fields), *prompt]


def _side(value: Any, name: str, reader: TurnReader) -> list[Message]:
    if isinstance(value, str) and _SPEAKER.match(value):  # Anthropic's HH-RLHF
        parts = _SPEAKER.split(value)[1:]
        speakers = {"Human": user, "Assistant": assistant}
        return [speakers[who](text) for who, text in zip(parts[::2], parts[1::2], strict=True)]
    return _messages(value, name, assistant, reader)


def _without_prompt(
    chosen: list[Message], rejected: list[Message]
) -> tuple[list[Message], list[Message], list[Message]]:
    """Both sides behind what they have in common, and that (TRL's implicit prompt)."""
    shared = 0
    for one, other in zip(chosen, rejected, strict=False):
        if one != other:
            break
        shared += 1
    if shared == len(chosen) == len(rejected):
        raise MalformedError("has the same text on both sides")
    if not shared:
        raise MalformedError("has no prompt, and sides that begin with different turns")
    return chosen[shared:], rejected[shared:], chosen[:shared]


def _unmarked(messages: list[Message], where: str, *, mark: bool) -> list[Message]:
    """Messages without marks: of a pair, replies of the prompt are never trained, and those of the
    sides always are. Raises FieldError for a mark (`mark`) that says otherwise."""
    if any(message.get("loss") is mark for message in messages):
        trained = "as trained" if mark else "as not trained"
        raise FieldError(f"marks a reply of {where} {trained}, and no trainer of pairs heeds that")
    return [{name: each for name, each in m.items() if name != "loss"} for m in messages]


def _scores(fields: Fields) -> tuple[float, float]:
    for names in _SCORES:
        if not any(map(fields.has, names)):
            continue
        values = [fields.take(name) for name in names]
        if not all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values):
            raise FieldError(f"has no numbers under both `{names[0]}` and `{names[1]}`")
        if not values[0] > values[1]:
            raise MalformedError("has a chosen side with no higher score than the rejected one")
        return float(values[0]), float(values[1])
    return 1.0, 0.0

"""Records of a JSON or JSONL file, and the messages that one of three common formats means.

Pure: text in, messages out; `conversations.py` makes rows of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

Message: TypeAlias = dict[str, Any]

SPEAKERS: Mapping[str, str] = {
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "assistant": "assistant",
    "model": "assistant",
    "bing": "assistant",
    "bard": "assistant",
    "system": "system",
}
"""Who speaks, as ShareGPT's exports call it."""


_TOO_DEEP = (
    "holds lists or objects within each other more deeply than can be read; a conversation needs "
    "three levels"
)


class DatasetError(ValueError):
    """A file that cannot be used; the message is written for people."""


class MalformedError(ValueError):
    """One record that is no conversation; the message says why."""


def read_records(path: Path) -> Iterator[tuple[int, Any]]:
    """(number from 0, record) of a file that holds one JSON list, or one object a line.

    Raises DatasetError at what is not JSON, with the line.
    """
    try:
        with path.open(encoding="utf-8-sig") as lines:
            first = lines.read(4096).lstrip()[:1]
            lines.seek(0)
            if first == "[":
                yield from enumerate(_whole(lines.read(), path))
                return
            number = 0
            for place, line in enumerate(lines, start=1):
                if line.strip():
                    yield number, _line(line, place, path)
                    number += 1
    except UnicodeDecodeError as error:
        raise DatasetError(f"{path.name} is not UTF-8 text: {error.reason}") from None


def _whole(text: str, path: Path) -> list[Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise DatasetError(f"{path.name} is not JSON: {error}") from None
    except RecursionError:
        raise DatasetError(f"{path.name} {_TOO_DEEP}") from None
    assert isinstance(found, list)
    return found


def _line(text: str, place: int, path: Path) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise DatasetError(f"{path.name}, line {place}: {_TOO_DEEP}") from None
    except ValueError as error:
        raise DatasetError(
            f"{path.name}, line {place}: not JSON ({error}); expected one object a line, or one "
            "list in the whole file"
        ) from None


def messages_of(record: Any, layout: str) -> list[Message]:
    """The messages of a record in a layout: "messages", "sharegpt" or "alpaca".

    Raises MalformedError for what has another shape.
    """
    if not isinstance(record, dict):
        raise MalformedError("is not an object")
    return READERS[layout](record)


def _from_messages(record: Mapping[str, Any]) -> list[Message]:
    found = []
    for entry in _list(record, "messages"):
        role, content = entry.get("role"), entry.get("content")
        if role not in ("system", "user", "assistant"):
            raise MalformedError(f"has a message of role {role!r}")
        # OpenAI's fine-tuning files write `weight: 0` for a reply that is not trained.
        weight = entry.get("weight")
        loss = entry.get("loss", None if weight is None else bool(weight))
        found.append(_message(role, content, loss))
        if role == "assistant" and entry.get("cut") is True:
            found[-1]["cut"] = True
        if role == "assistant" and entry.get("raw") is not None:
            raw = _message(role, entry["raw"], None)["content"]
            if found[-1]["content"] not in raw:
                raise MalformedError("has a reply whose `raw` does not hold its `content`")
            found[-1]["raw"] = raw
    return found


def _from_sharegpt(record: Mapping[str, Any]) -> list[Message]:
    found = []
    for entry in _list(record, "conversations"):
        speaker = entry.get("from")
        role = SPEAKERS.get(speaker) if isinstance(speaker, str) else None
        if role is None:
            raise MalformedError(f"has a turn from {speaker!r}")
        found.append(_message(role, entry.get("value"), entry.get("loss")))
    return found


def _from_alpaca(record: Mapping[str, Any]) -> list[Message]:
    instruction, extra = record.get("instruction"), record.get("input") or ""
    if not isinstance(extra, str) or not isinstance(instruction, str) or not instruction.strip():
        raise MalformedError("has no text under `instruction`, or something else under `input`")
    question = f"{instruction}\n\n{extra}" if extra.strip() else instruction
    return [_message("user", question, None), _message("assistant", record.get("output"), None)]


READERS: Mapping[str, Callable[[Mapping[str, Any]], list[Message]]] = {
    "messages": _from_messages,
    "sharegpt": _from_sharegpt,
    "alpaca": _from_alpaca,
}


def _list(record: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    found = record.get(name)
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise MalformedError(f"has no list of turns under `{name}`")
    return found


def _message(role: str, content: Any, loss: Any) -> Message:
    if not isinstance(content, str):
        raise MalformedError(f"has a {role} turn without text")
    # JSON can carry lone surrogates; UTF-8 cannot.
    message: Message = {"role": role, "content": content.encode("utf-8", "replace").decode()}
    if role == "assistant" and isinstance(loss, bool):
        message["loss"] = loss
    return message

"""Turns of published conversations -> messages of rows (contracts.md, section 4).

Reads OpenAI's messages (`role`, `content`) and ShareGPT's turns (`from`, `value`). Calls of
functions become part of a reply's text, as `reply_format: tools` has them
(`data/chat/tool_calls.py`); results are messages of the role `tool`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from agentc_backends.data.chat.tool_calls import call_text, read_reply
from agentc_backends.data.datasets.records import FieldError, Fields, Ledger, MalformedError

Message: TypeAlias = dict[str, Any]

_CALL = "function_call"
SPEAKERS: Mapping[str, str] = {
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "gpt", "chatgpt", "model", "bing", "bard"), "assistant"),
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("tool", "observation", "function", "function_response"), "tool"),
    _CALL: _CALL,
}
"""Roles by the names that published data have for them."""

_MARKS = frozenset({"loss", "train", "training", "weight", "loss_weight"})
REASONING = ("reasoning_content", "reasoning", "thinking")
_RESULT_OPENS, _RESULT_CLOSES = "<tool_response>\n", "\n</tool_response>"


@dataclass(frozen=True, slots=True)
class TurnReader:
    """`what` names the format in errors; with `think` reasoning is trained before the reply."""

    what: str
    ledger: Ledger
    think: bool = False

    def messages(self, entries: Any, name: str) -> list[Message]:
        """The messages of a list of turns under the field `name`. Raises MalformedError and
        FieldError."""
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise MalformedError(f"has no list of turns under `{name}`")
        found: list[Message] = []
        calls: list[str] = []
        answers: list[str] = []
        for entry in entries:
            if (plain := _plain(entry)) is not None:  # most turns are, and files are long
                found.append(plain)
                continue
            fields = Fields(entry, self.ledger, f"{name}.")
            _, speaker = fields.one_of(("role", "from"))
            role = SPEAKERS.get(speaker) if isinstance(speaker, str) else None
            if role is None:
                raise MalformedError(
                    f"has a turn from {speaker!r}, which is no role",
                    "write `system`, `user`, `assistant` or `tool`; `on_malformed: drop` leaves "
                    "such conversations out with a count",
                )
            if role == "tool":
                answers = answers if found and found[-1]["role"] == "tool" else []
                self._add_result(found, fields, calls, answers)
            elif role in ("assistant", _CALL):
                message, calls = self._reply(fields, called=role == _CALL)
                found.append(message)
            else:
                found.append(_message(role, self._text(fields, role)))
                if role == "system" and len(found) == 1 and fields.has("tools"):
                    found[0]["tools"] = self.tools(fields.take("tools"), fields.path("tools"))
            self._marks(fields, found[-1])
            fields.finish(self.what)
        return found

    def tools(self, value: Any, name: str) -> list[Any]:
        """Signatures of functions, in the shape of OpenAI's API; a text holds them as JSON."""
        if isinstance(value, str):
            value = _json(value)
        if not isinstance(value, list) or not all(isinstance(tool, dict) for tool in value):
            raise FieldError(f"has a `{name}` that is no list of functions")
        found = []
        for tool in value:
            if isinstance(tool.get("name"), str) and tool.get("type", "function") == "function":
                tool = {"type": "function", "function": _without(tool, "type")}
            function = tool.get("function")
            if tool.get("type") != "function" or not isinstance(function, dict):
                raise FieldError(
                    f"has a `{name}` with an entry that is no function: {_excerpt(tool)}",
                    'write {"type": "function", "function": {"name", "description", "parameters"}}',
                )
            found.append(tool)
        return found

    def _reply(self, fields: Fields, *, called: bool) -> tuple[Message, list[str]]:
        """A reply with its calls in its text, and the numbers of the calls."""
        calls, numbers = self._calls(fields)
        text = self._text(fields, "assistant", may_lack=bool(calls))
        if called:
            text = self._called(text, fields.path("value"))
        message = _message("assistant", "\n".join([*([text] if text else []), *calls]))
        cut = fields.take("cut")
        if cut not in (None, False, True):
            raise FieldError(f"has a `{fields.path('cut')}` that is neither true nor false")
        if cut:
            message["cut"] = True
        name, reasoning = fields.one_of(REASONING) if self.think else ("", None)
        raw = fields.take("raw")
        if isinstance(reasoning, str):
            if raw is not None:
                raise FieldError(f"has both `{fields.path(name)}` and `{fields.path('raw')}`")
            raw = f"<think>\n{reasoning.strip()}\n</think>\n\n{message['content']}"
        elif reasoning is not None:
            raise FieldError(f"has a `{fields.path(name)}` that is no text")
        if raw is not None:
            raw = _message("assistant", raw)["content"]
            if message["content"] not in raw:
                raise MalformedError("has a reply whose `raw` does not hold its `content`")
            message["raw"] = raw
        return message, numbers

    def _add_result(
        self, found: list[Message], fields: Fields, calls: list[str], answers: list[str]
    ) -> None:
        """The result of a call. Those of several calls of one reply are one message, in the order
        of the calls, with the notation's tags between them."""
        text = self._text(fields, "tool")
        if text.startswith(_RESULT_OPENS) and text.endswith(_RESULT_CLOSES):
            text = text[len(_RESULT_OPENS) : -len(_RESULT_CLOSES)]
        number = fields.take("tool_call_id") if fields.has("tool_call_id") else None
        if number is not None:
            self.ledger.unused[fields.path("tool_call_id")] += 1
        fields.unused("name")
        if (
            number is not None
            and calls
            and "" not in calls
            and number not in calls[len(answers) :][:1]
        ):
            raise FieldError(
                f"has results in another order than their calls (`{fields.path('tool_call_id')}` "
                f"{number!r})",
                "write the results in the order of the calls",
            )
        answers.append(str(number))
        if found and found[-1]["role"] == "tool":
            text = f"{found.pop()['content']}{_RESULT_CLOSES}\n{_RESULT_OPENS}{text}"
        found.append(_message("tool", text))

    def _text(self, fields: Fields, role: str, *, may_lack: bool = False) -> str:
        content = fields.take("content")
        if content is None:
            content = fields.take("value")
        if isinstance(content, list):
            content = "".join(self._part(part, role, fields.path("content.")) for part in content)
        if content is None and may_lack:
            return ""
        if not isinstance(content, str):
            raise MalformedError(f"has {_a(role)} turn without text")
        return content

    def _part(self, part: Any, role: str, above: str) -> str:
        """The text of one part of a content in parts."""
        fields = Fields(part if isinstance(part, dict) else {}, self.ledger, above)
        kind, text = fields.take("type"), fields.take("text")
        if kind not in ("text", None) or not isinstance(text, str):
            raise FieldError(
                f"has {_a(role)} turn with a part of type {kind!r}; rows hold text",
                "leave such records out of the file",
            )
        fields.finish(self.what)
        return text

    def _calls(self, fields: Fields) -> tuple[list[str], list[str]]:
        """The calls of a reply as text, and their numbers ("" where a call has none)."""
        calls = fields.take("tool_calls") if fields.has("tool_calls") else []
        if isinstance(calls, str):
            calls = _json(calls)
        if not isinstance(calls, list):
            raise FieldError(f"has a `{fields.path('tool_calls')}` that is no list of calls")
        above = fields.path("tool_calls.")
        texts = [self._call(call, above) for call in calls]
        numbers = [str(call.get("id") or "") for call in calls]
        if fields.has("function_call"):
            texts.append(self._call(fields.take("function_call"), fields.path("function_call.")))
            numbers.append("")
        return texts, numbers

    def _call(self, call: Any, above: str) -> str:
        """One call as a reply writes it."""
        fields = outer = Fields(call if isinstance(call, dict) else {}, self.ledger, above)
        outer.unused("id", "index")
        if outer.has("type") and call["type"] == "function":
            outer.unused("type")
        if isinstance(function := outer.take("function"), dict):
            fields = Fields(function, self.ledger, f"{above}function.")
        name = fields.take("name")
        _, arguments = fields.one_of(("arguments", "parameters"))
        text = "{}" if arguments is None else arguments
        if not isinstance(text, str):
            text = json.dumps(arguments, ensure_ascii=False)
        if not isinstance(name, str) or not isinstance(_json(text), dict):
            raise FieldError(
                f"has a call under `{above.rstrip('.')}` that is no function's name with a JSON "
                f"object of arguments: {_excerpt(call)}",
                "write `name`, and `arguments` as a JSON object, or as a text that holds one (in "
                "double quotes)",
            )
        for each in (fields,) if fields is outer else (fields, outer):
            each.finish(self.what)
        return call_text(name, text.strip())

    def _called(self, text: str, path: str) -> str:
        """The turn `function_call` of ShareGPT: one call as JSON, or a list of them."""
        calls = _json(text)
        calls = [calls] if isinstance(calls, dict) else calls
        if isinstance(calls, list) and calls:
            return "\n".join(self._call(call, f"{path}.") for call in calls)
        if read_reply(text)[1]:
            return text
        raise FieldError(
            f"has a turn from 'function_call' that is no JSON object with `name` and `arguments`: "
            f"{_excerpt(text)}"
        )

    def _marks(self, fields: Fields, message: Message) -> None:
        """Whether a reply is trained, by the names that other trainers have for that."""
        stated: dict[str, bool] = {}
        for name in fields.among(_MARKS):
            value, path = fields.take(name), fields.path(name)
            if value not in (0, 1):
                raise FieldError(
                    f"has a `{path}` of {_excerpt(value)}; only 0, 1, true, false count"
                )
            if message["role"] == "assistant":
                stated[path] = bool(value)
            elif value is True:
                raise FieldError(f"marks {_a(message['role'])} turn as trained (`{path}`)")
            else:
                self.ledger.unused[path] += 1
        if len({*stated.values()}) > 1:
            raise FieldError(f"has marks that contradict each other: {', '.join(stated)}")
        if stated:
            message["loss"] = next(iter(stated.values()))


def with_tools(messages: list[Message], tools: Sequence[Any]) -> list[Message]:
    """The conversation with functions in its first message, a system one."""
    if not tools:
        return messages
    if not messages or messages[0]["role"] != "system":
        return [{"role": "system", "content": "", "tools": list(tools)}, *messages]
    if "tools" in messages[0]:
        raise FieldError("has functions both in the record and in its system message")
    return [{**messages[0], "tools": list(tools)}, *messages[1:]]


def with_system(messages: list[Message], text: Any) -> list[Message]:
    """The conversation behind a system text that the record has besides its turns."""
    if text is None or text == "":
        return messages
    if messages and messages[0]["role"] == "system":
        raise FieldError("has a `system` text, and a system turn as well")
    return [_message("system", text), *messages]


def user(text: Any) -> Message:
    """A user's message. Raises MalformedError where it is no text."""
    return _message("user", text)


def assistant(text: Any) -> Message:
    """A reply. Raises MalformedError where it is no text."""
    return _message("assistant", text)


def _message(role: str, content: Any) -> Message:
    if not isinstance(content, str):
        raise MalformedError(f"has {_a(role)} turn without text")
    # JSON can carry lone surrogates; UTF-8 cannot.
    return {"role": role, "content": content.encode("utf-8", "replace").decode()}


def _plain(entry: Mapping[str, Any]) -> Message | None:
    """The message of a turn that has a role and a text alone; None of any other."""
    if len(entry) != 2:
        return None
    speaker, text = entry.get("role"), entry.get("content")
    if speaker is None:
        speaker, text = entry.get("from"), entry.get("value")
    role = SPEAKERS.get(speaker) if isinstance(speaker, str) else None
    if role in ("user", "assistant", "system") and isinstance(text, str):
        return _message(role, text)
    return None


def _a(role: str) -> str:
    return f"an {role}" if role[0] in "aeio" else f"a {role}"


def _without(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: each for key, each in value.items() if key != name}


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _excerpt(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."

"""One request of a program with the server's reply to it, as far as rows depend on them, and all
that is recorded of one episode."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from agentc_backends.agents.common.episode import is_cut_by_context
from agentc_backends.clients.errors import read_refusal

Message: TypeAlias = dict[str, Any]
"""As `openai_api/conversation.py` reads it: role, content (a text), and `tool_calls` or
`tool_call_id` where functions are called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """`messages` and `tools` as they were asked with, `reply` as it was answered. `prompt_ids` are
    the tokens that the server made of the request, `token_ids` those that it drew, the end and a
    stop text included, `logprobs` the natural-log probability of each; None where the server does
    not tell. `stopped_by` is the stop text that ended it, where one did."""

    messages: tuple[Message, ...]
    tools: tuple[Mapping[str, Any], ...]
    reply: Message
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    prompt_ids: tuple[int, ...] | None
    token_ids: tuple[int, ...] | None
    logprobs: tuple[float, ...] | None
    stopped_by: str | None = None
    cut_by_context: bool = False


def read_exchange(
    messages: Sequence[Message],
    tools: Sequence[Mapping[str, Any]],
    answer: Mapping[str, Any],
    *,
    max_tokens: int,
) -> Exchange:
    """The exchange of a whole chat completion. Raises ValueError where it is none."""
    try:
        choice = answer["choices"][0]
        said = choice["message"]
        told = answer.get("usage") or {}
        prompt_ids = _ids(answer.get("prompt_token_ids"))
        token_ids = _ids(choice.get("token_ids"))
        stopped_by = choice.get("stop_reason")
        reply: Message = {"role": "assistant", "content": said.get("content") or ""}
        if said.get("tool_calls"):
            reply["tool_calls"] = [_call(call) for call in said["tool_calls"]]
        stop = str(choice.get("finish_reason"))
        drawn = int(told.get("completion_tokens", len(token_ids or ())))
        return Exchange(
            messages=tuple(_encodable(list(messages))),
            tools=tuple(_encodable(list(tools))),
            reply=_encodable(reply),
            finish_reason=stop,
            prompt_tokens=int(told.get("prompt_tokens", len(prompt_ids or ()))),
            completion_tokens=drawn,
            prompt_ids=prompt_ids,
            token_ids=token_ids,
            logprobs=_logprobs(choice),
            # A number is a token that ended it, as its own end does.
            stopped_by=stopped_by if isinstance(stopped_by, str) else None,
            cut_by_context=is_cut_by_context(stop, drawn, max_tokens),
        )
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise ValueError(f"a reply that is no chat completion: {str(answer)[:200]}") from error


def _ids(listed: Any) -> tuple[int, ...] | None:
    return None if listed is None else tuple(int(token) for token in listed)


def _logprobs(choice: Mapping[str, Any]) -> tuple[float, ...] | None:
    content = (choice.get("logprobs") or {}).get("content")
    return None if content is None else tuple(float(entry["logprob"]) for entry in content)


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call["function"]
    named = {"name": function["name"], "arguments": function.get("arguments") or "{}"}
    return {"id": call.get("id", ""), "type": "function", "function": named}


def _encodable(value: Any) -> Any:
    """Without lone surrogates, which JSON can carry and UTF-8 cannot."""
    text = json.dumps(value, ensure_ascii=False)
    return json.loads(text.encode("utf-8", "replace").decode("utf-8"))


_EXCERPT = 300


@dataclass(slots=True, kw_only=True)
class RecordedSession:
    """An episode. Its program authenticates by `key`, which is random and opens nothing else;
    `name` is a number for the job's own use. Each of its replies is drawn by a seed that follows
    from `seed` and its number, and there are `most_replies` of them (None: any number)."""

    name: str
    key: str
    seed: int
    most_replies: int | None
    exchanges: list[Exchange] = field(default_factory=list)
    unanswered: tuple[Message, ...] = ()
    """What the last request said, where it was refused: how its program went on."""
    overflowed: bool = False
    """The last request was longer than the context."""
    limited: bool = False
    """It asked for more than `most_replies`."""
    failed: str | None = None
    """How the server failed at the last request, or cut a reply off, where it did."""
    cut_off: list[tuple[Message, ...]] = field(default_factory=list)
    """What those requests said whose streams ended before their replies did, and that nobody asked
    again: their program may have gone on with half of a reply."""
    overruled: int = 0
    """Requests that asked to be decoded otherwise than the stage says."""

    def answered(self, exchange: Exchange) -> None:
        """The last request has its reply."""
        self.exchanges.append(exchange)
        self.cut_off = [asked for asked in self.cut_off if asked != exchange.messages]
        if not self.cut_off:
            self.failed = None
        self.overflowed, self.unanswered = False, ()

    def refused(self, status: int, content: bytes) -> None:
        """The server refused the last request, with this body."""
        self.overflowed = read_refusal(content) is not None
        said = content[:_EXCERPT].decode("utf-8", "replace")
        broken = status >= 500 and not self.overflowed
        self.failed = f"the model server: {status} {said}" if broken else None

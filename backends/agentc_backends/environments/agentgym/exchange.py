"""Bodies and replies of one dialect: what to send, and what an answer says. Knows no HTTP client.

The family reports errors in four ways: `{"error": ...}` with status 200, statuses of 400 and
above, an observation that stands for a failure, and replies that lack what they should have. Here
each is an UpstreamError. Neighbours: `dialect.py`, `upstream.py`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentc_backends.environments.agentgym.dialect import UpstreamDialect


class UpstreamError(Exception):
    """The server refused a call, failed, or answered what the dialect does not allow."""


class NoAnswerError(UpstreamError):
    """Nothing came back: the server is gone, or still at work on the call."""


class ErrorReplyError(UpstreamError):
    """The server answered `{"error": text}` with status 200. `text` is what it says."""

    def __init__(self, route: str, text: str) -> None:
        super().__init__(f"{route}: the server answers an error: {text}")
        self.text = text


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request; `body` None sends none."""

    method: str
    path: str
    body: Mapping[str, Any] | None = None
    query: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class HttpReply:
    """What came back: the status, and the decoded JSON (text where it was none)."""

    status: int
    content: Any


@dataclass(frozen=True, slots=True)
class UpstreamTurn:
    """An observation with the step's reward in the server's own units."""

    observation: str
    reward: float
    done: bool


def create_request(dialect: UpstreamDialect) -> Request:
    return Request("POST", f"{dialect.prefix}/create", dialect.create_body)


def reset_request(dialect: UpstreamDialect, session: int, task: int) -> Request:
    body = {dialect.session_field: session, dialect.task_field: task, **dialect.reset_fields}
    return Request("POST", f"{dialect.prefix}/reset", body)


def step_request(dialect: UpstreamDialect, session: int, action: str) -> Request:
    body = {dialect.session_field: session, "action": worded(dialect, action)}
    return Request("POST", f"{dialect.prefix}/step", body)


def observe_request(dialect: UpstreamDialect, session: int) -> Request:
    query: dict[str, str] = {dialect.session_field: str(session)}
    return Request("GET", f"{dialect.prefix}/observation", query=query)


def close_request(dialect: UpstreamDialect, session: int) -> Request:
    return Request("POST", f"{dialect.prefix}/close", {dialect.session_field: session})


def worded(dialect: UpstreamDialect, action: str) -> str:
    """An action as the server wants it. Rollouts send bare actions; a mark or a fence that an
    agent has written itself is not doubled."""
    if dialect.action_form == "marked" and "Action:" not in action:
        return f"Action: {action}"
    if dialect.action_form == "fenced" and "```" not in action:
        return f"```{action}```"
    return action


def read_created(dialect: UpstreamDialect, reply: HttpReply) -> int:
    """The new session's number: the reply itself, or its field."""
    content = _content("/create", reply)
    if isinstance(content, Mapping):
        content = content.get(dialect.session_field, content.get("id"))
    if isinstance(content, bool) or not isinstance(content, int):
        raise _unexpected(
            "/create", f"a number, or an object with `{dialect.session_field}`", reply
        )
    return content


def read_opening(dialect: UpstreamDialect, reply: HttpReply) -> str | None:
    """The first text of a task; None when it has to be asked for with GET /observation."""
    content = _content("/reset", reply)
    match dialect.opening:
        case "observe":
            return None
        case "text":
            found = _text("/reset", content, reply)
        case "first":
            first = content[0] if isinstance(content, list) and content else None
            found = _text("/reset", first, reply)
        case _:
            if not isinstance(content, Mapping):
                raise _unexpected("/reset", "an object", reply)
            texts = [_field("/reset", content, name, reply) for name in dialect.opening_fields]
            found = "\n".join(texts) + _legal(dialect, content)
    return _no_failure("/reset", dialect, found)


def read_observation(dialect: UpstreamDialect, reply: HttpReply) -> str:
    """The reply to GET /observation: a text, or an object that holds it."""
    content = _content("/observation", reply)
    if isinstance(content, Mapping):
        content = content.get("observation", content.get(dialect.step_field))
    return _no_failure("/observation", dialect, _text("/observation", content, reply))


def read_step(dialect: UpstreamDialect, reply: HttpReply) -> UpstreamTurn:
    content = _content("/step", reply)
    if not isinstance(content, Mapping):
        raise _unexpected("/step", "an object", reply)
    observation = _field("/step", content, dialect.step_field, reply) + _legal(dialect, content)
    reward = content.get(dialect.reward_field)
    if not isinstance(reward, (int, float)) or not math.isfinite(reward):
        raise _unexpected("/step", f"a number in `{dialect.reward_field}`", reply)
    ends = [content.get(name) for name in dialect.done_fields]
    if not any(isinstance(end, bool) for end in ends):
        raise _unexpected("/step", f"true or false in `{dialect.done_fields[0]}`", reply)
    text = _no_failure("/step", dialect, observation)
    return UpstreamTurn(text, float(reward), any(end is True for end in ends))


def _content(route: str, reply: HttpReply) -> Any:
    content = reply.content
    if isinstance(content, Mapping) and content.get("error") is not None:
        # The released servers put str(exception) there: for a KeyError that is the key alone.
        text = str(content["error"])[:300]
        if reply.status == 200:
            raise ErrorReplyError(route, text)
    if reply.status != 200:
        raise UpstreamError(f"{route}: the server answers {reply.status}: {str(content)[:300]}")
    return content


def _field(route: str, content: Mapping[str, Any], name: str, reply: HttpReply) -> str:
    if name not in content:
        raise _unexpected(route, f"a text in `{name}`", reply)
    return _text(route, content[name], reply)


def _text(route: str, value: Any, reply: HttpReply) -> str:
    if not isinstance(value, str):
        raise _unexpected(route, "a text", reply)
    return value


def _legal(dialect: UpstreamDialect, content: Mapping[str, Any]) -> str:
    """The legal actions, worded as the family's own client words them."""
    if dialect.legal_actions is None:
        return ""
    listed = content.get(dialect.legal_actions)
    if not isinstance(listed, list):
        return ""
    return f"\nAVAILABLE ACTIONS: {','.join(str(action) for action in listed)}"


def _no_failure(route: str, dialect: UpstreamDialect, text: str) -> str:
    if text.strip() in dialect.failure_texts:
        raise UpstreamError(f"{route}: the server failed: {text.strip()}")
    return text


def _unexpected(route: str, expected: str, reply: HttpReply) -> UpstreamError:
    return UpstreamError(f"{route}: expected {expected}, got {str(reply.content)[:200]}")

"""OpenEnv's WebSocket protocol over the same sessions: one connection is one session.

Spoken as `openenv` 0.10 speaks it: `{"type": reset | step | state | close, "data": {...}}`, and
GET /schema and /metadata. Nothing of openenv is imported. Its HTTP /reset and /step, which make an
environment for each call, are not here: those paths are AgentGym's.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from agentc_backends.environments.server.environment import EnvironmentFailure, EpisodeError
from agentc_backends.environments.server.episodes import Episodes
from agentc_backends.environments.server.requests import BusyError, RequestError
from agentc_backends.environments.server.sessions import EnvironmentSession, UnknownSessionError
from agentc_backends.environments.server.wire import (
    JsonReply,
    decoded,
    integer,
    text,
)

_METADATA = {"type": "object", "additionalProperties": True}


def openenv_routes(episodes: Episodes) -> list[BaseRoute]:
    """The routes that OpenEnv adds to AgentGym's; /health serves both."""

    async def schema(request: Request) -> Response:
        return JsonReply(_schema(episodes))

    async def metadata(request: Request) -> Response:
        own = episodes.reference
        about = f"{own.title}, served by agentc"
        return JsonReply({"name": own.name, "description": about, "version": own.version})

    async def connected(websocket: WebSocket) -> None:
        await _converse(episodes, websocket)

    return [
        Route("/schema", schema, methods=["GET"]),
        Route("/metadata", metadata, methods=["GET"]),
        WebSocketRoute("/ws", connected),
    ]


@dataclass(slots=True)
class _Conversation:
    """What a connection has asked for so far."""

    session: EnvironmentSession
    resets: int = 0
    state: dict[str, Any] = field(default_factory=lambda: {"episode_id": None, "step_count": 0})


class _MessageError(Exception):
    """The message cannot be answered as it stands; `code` is OpenEnv's word for why."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


async def _converse(episodes: Episodes, websocket: WebSocket) -> None:
    await websocket.accept()
    try:
        session, _ = await episodes.create()
    except BusyError as error:
        await websocket.send_json(_error(error.message, "CAPACITY_REACHED"))
        await websocket.close(1013)
        return
    # It ends with its connection, whose own pings tell when that is dead.
    session.held = True
    conversation = _Conversation(session)
    try:
        while True:
            message = await websocket.receive()
            if message["type"] == "websocket.disconnect":
                return
            answer = await _answer(episodes, conversation, message.get("text"))
            if answer is None:
                await websocket.close()
                return
            await websocket.send_text(JsonReply({}).render(answer).decode("ascii"))
    except WebSocketDisconnect:
        return
    except asyncio.CancelledError:
        # The server stops; it has told the client so.
        return
    finally:
        left = episodes.store.close(session.number)
        if left is not None:
            await episodes.close(left)


async def _answer(
    episodes: Episodes, conversation: _Conversation, received: str | None
) -> Mapping[str, Any] | None:
    """None when the client says that it is done."""
    try:
        try:
            message = decoded(received or "")
        except RequestError as error:
            raise _MessageError("Invalid JSON: an object is expected", "INVALID_JSON") from error
        kind, data = message.get("type", ""), message.get("data", {})
        if not isinstance(data, dict):
            raise _MessageError("Invalid message: data is an object", "VALIDATION_ERROR")
        match kind:
            case "reset":
                return _observed(conversation, await _reset(episodes, conversation, data))
            case "step":
                return _observed(conversation, await _step(episodes, conversation, data))
            case "state":
                return {"type": "state", "data": conversation.state}
            case "close":
                return None
        raise _MessageError(f"Unknown message type: {kind}", "UNKNOWN_TYPE")
    except _MessageError as error:
        return _error(str(error), error.code)
    except RequestError as error:
        problem = error.payload.get("error") or error.payload["detail"][0]["msg"]
        code = "VALIDATION_ERROR" if error.status == 422 else "EXECUTION_ERROR"
        return _error(str(problem), code)
    except UnknownSessionError as error:
        return _error(error.message, "SESSION_ERROR")
    except (EpisodeError, EnvironmentFailure) as error:
        return _error(str(error), "EXECUTION_ERROR")


async def _reset(
    episodes: Episodes, conversation: _Conversation, data: Mapping[str, Any]
) -> Mapping[str, Any]:
    """OpenEnv's clients need not name a task. `task_id` and `seed` mean what they mean elsewhere;
    without a task, `seed` chooses one of the `split`, and without both it is the next one."""
    seed = None if data.get("seed") is None else integer(data, "seed")
    if "task_id" in data:
        task_id = text(data, "task_id")
    else:
        split = text(data, "split") if "split" in data else episodes.reference.splits[0]
        if split not in episodes.reference.splits:
            known = ", ".join(episodes.reference.splits)
            raise _MessageError(f"no split {split!r}; there are {known}", "VALIDATION_ERROR")
        tasks = episodes.reference.tasks(split)
        task_id = tasks[(conversation.resets if seed is None else seed) % len(tasks)]
    answer = await episodes.reset(conversation.session, task_id, seed or 0)
    conversation.resets += 1
    episode = data.get("episode_id")
    conversation.state = {
        "episode_id": episode if isinstance(episode, str) else uuid.uuid4().hex,
        "step_count": 0,
        "task_id": task_id,
        "seed": seed or 0,
    }
    return answer


async def _step(
    episodes: Episodes, conversation: _Conversation, data: Mapping[str, Any]
) -> Mapping[str, Any]:
    answer = await episodes.step(conversation.session, text(data, "action"))
    conversation.state["step_count"] += 1
    return answer


def _observed(conversation: _Conversation, answer: Mapping[str, Any]) -> Mapping[str, Any]:
    rest = {key: answer[key] for key in conversation.session.environment.reported if key in answer}
    observation = {"text": answer["observation"], **rest, "metadata": {}}
    data = {"observation": observation, "reward": answer["reward"], "done": answer["done"]}
    return {"type": "observation", "data": data}


def _error(message: str, code: str) -> dict[str, Any]:
    return {"type": "error", "data": {"message": message, "code": code}}


def _schema(episodes: Episodes) -> dict[str, Any]:
    reported: dict[str, Any] = {name: {} for name in episodes.reference.reported}
    return {
        "action": {
            "type": "object",
            "properties": {"action": {"type": "string"}, "metadata": _METADATA},
            "required": ["action"],
        },
        "observation": {
            "type": "object",
            "properties": {
                "text": {"type": "string"},
                "reward": {"type": "number"},
                "done": {"type": "boolean"},
                **reported,
                "metadata": _METADATA,
            },
            "required": ["text"],
        },
        "state": {
            "type": "object",
            "properties": {
                "episode_id": {"type": ["string", "null"]},
                "step_count": {"type": "integer", "minimum": 0},
                "task_id": {"type": "string"},
                "seed": {"type": "integer"},
            },
            "required": ["step_count"],
        },
    }

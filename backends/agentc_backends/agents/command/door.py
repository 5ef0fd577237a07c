"""The door through which programs act in the stage's environment: routes of the recorder's server,
under the key of the episode.

What an action earns is noted here and never told by the program. Neighbours: `play.py`, which
opens episodes; `recorded/recorder.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agentc_backends.agents.common.episode import EpisodeSession
from agentc_backends.agents.common.failures import FatalError
from agentc_backends.agents.recorded.episode_row import PlayedEpisode
from agentc_backends.agents.recorded.recorder import Recorder
from agentc_backends.clients.errors import InfrastructureError
from agentc_backends.openai_api.replies import JsonReply
from agentc_backends.openai_api.requests import read_object
from agentc_backends.openai_api.values import ApiError, text

PATH = "/environment"


@dataclass(slots=True, kw_only=True)
class DoorEpisode(PlayedEpisode):
    """An episode at the door, and what its program is `told`."""

    session: EpisodeSession
    told: Mapping[str, Any]
    failed: InfrastructureError | FatalError | None = None
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class Door:
    """Open episodes, by the names of their sessions."""

    def __init__(self) -> None:
        self._open: dict[str, DoorEpisode] = {}
        self.recorder: Recorder | None = None

    def routes(self) -> list[Route]:
        """GET: what the program is told. POST /step: an action, of which the answer is what the
        agent sees."""
        return [
            Route(PATH, self._told),
            Route(f"{PATH}/step", self._step, methods=["POST"]),
        ]

    def open(self, episode: DoorEpisode) -> None:
        self._open[episode.recorded.name] = episode

    def close(self, episode: DoorEpisode) -> None:
        self._open.pop(episode.recorded.name, None)

    def _at(self, request: Request) -> DoorEpisode:
        assert self.recorder is not None
        return self._open[self.recorder.session_of(request).name]

    async def _told(self, request: Request) -> Response:
        return JsonReply(dict(self._at(request).told))

    async def _step(self, request: Request) -> Response:
        episode = self._at(request)
        action = text(await read_object(request), "action")
        async with episode.turn:
            if episode.done:
                raise ApiError(400, "the episode has ended", "episode_ended")
            try:
                step = await episode.session.step(action)
            except (InfrastructureError, FatalError) as error:
                episode.failed = error
                raise ApiError(502, "the environment fails", "bad_gateway") from error
            episode.steps.append((len(episode.recorded.exchanges), step))
        return JsonReply({"observation": step.observation, "done": step.done})

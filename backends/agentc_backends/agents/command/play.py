"""Plays one episode by the user's program: runs it in a folder of its own, against the recorder and
the door, and makes a row of what they noted.

The door is the routes of the recorder's server through which a program acts in the environment,
under the key of its episode. What an action earns is noted here; the program never reports it.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agentc.program.child import die_with_parent
from agentc_backends.agents.common.connect import AgentGymWorld, ChatPolicy
from agentc_backends.agents.common.episode import Attempt, EpisodeRules, EpisodeSession
from agentc_backends.agents.common.failures import FatalError
from agentc_backends.agents.common.prompts import opening_messages
from agentc_backends.agents.recording.episodes import (
    UNPROVED,
    PlayedEpisode,
    episode_end,
    episode_record,
    prove,
)
from agentc_backends.agents.recording.exchange import Message
from agentc_backends.agents.recording.proof import ProvedConversation, Unproved
from agentc_backends.agents.recording.recorder import Recorder
from agentc_backends.clients.errors import ContextOverflowError, InfrastructureError
from agentc_backends.openai_api.replies import JsonReply
from agentc_backends.openai_api.requests import read_object
from agentc_backends.openai_api.values import ApiError, text
from agentc_backends.user_files.layout import write_files

EPISODE = "AGENTC_EPISODE"
"""Holds the path of the JSON file that tells a program of its episode."""
_TAIL = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentProgram:
    """What is run: `words`, or the first of `files` by this Python. `hidden` variables are not its:
    they hold secrets."""

    words: Sequence[str]
    python: bool
    files: Sequence[Mapping[str, str]]
    hidden: frozenset[str]
    longest_s: float

    async def run(
        self, folder: Path, description: Mapping[str, Any], own: Mapping[str, str]
    ) -> str | None:
        """None where it ended well, else a sentence. `description` is what the file holds, `own`
        variables of the episode. The folder is gone afterwards."""
        try:
            return await self._run(folder, description, own)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    async def _run(
        self, folder: Path, description: Mapping[str, Any], own: Mapping[str, str]
    ) -> str | None:
        place = write_files(folder / "files", self.files)
        episode = folder / "episode.json"
        episode.write_text(json.dumps(description, ensure_ascii=False), encoding="utf-8")
        words = [*self.words]
        if self.python:
            words = [sys.executable, self.files[0]["path"], str(episode)]
        me = os.getpid()
        log = folder / "log.txt"
        with log.open("wb") as out:
            try:
                process = await asyncio.create_subprocess_exec(
                    *words,
                    cwd=place,
                    env=self._variables({**own, EPISODE: str(episode)}),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    start_new_session=True,
                    preexec_fn=lambda: die_with_parent(signal.SIGKILL, me),
                )
            except OSError as error:
                return f"cannot start {words[0]}: {error}"
            try:
                status = await asyncio.wait_for(process.wait(), self.longest_s)
            except asyncio.TimeoutError:
                return f"its program did not end within {self.longest_s:g} s"
            finally:
                # What it started beside itself ends with it.
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        if status == 0:
            return None
        ended = f"exit status {status}" if status > 0 else signal.Signals(-status).name
        said = log.read_bytes()[-_TAIL:].decode("utf-8", "replace").strip()
        return f"its program ended with {ended}: {said or 'it printed nothing'}"

    def _variables(self, own: Mapping[str, str]) -> dict[str, str]:
        variables = {n: value for n, value in os.environ.items() if n not in self.hidden}
        # A program finds the modules beside it, as it does when it is run by hand.
        variables.pop("PYTHONSAFEPATH", None)
        return {**variables, "PYTHONDONTWRITEBYTECODE": "1", **own}


PATH = "/environment"


@dataclass(slots=True, kw_only=True)
class DoorEpisode(PlayedEpisode):
    """An episode at the door, and the `description` that its program receives."""

    session: EpisodeSession
    description: Mapping[str, Any]
    failed: InfrastructureError | FatalError | None = None
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class Door:
    """Open episodes, by the names of their sessions."""

    def __init__(self) -> None:
        self._open: dict[str, DoorEpisode] = {}
        self.recorder: Recorder | None = None

    def routes(self) -> list[Route]:
        """GET: the episode's description. POST /step: an action, of which the answer is what the
        agent sees."""
        return [
            Route(PATH, self._describe),
            Route(f"{PATH}/step", self._step, methods=["POST"]),
        ]

    def open(self, episode: DoorEpisode) -> None:
        self._open[episode.recorded.name] = episode

    def close(self, episode: DoorEpisode) -> None:
        self._open.pop(episode.recorded.name, None)

    def _at(self, request: Request) -> DoorEpisode:
        assert self.recorder is not None
        return self._open[self.recorder.session_of(request).name]

    async def _describe(self, request: Request) -> Response:
        return JsonReply(dict(self._at(request).description))

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramStage:
    """What all episodes of a stage share."""

    rules: EpisodeRules
    max_turns: int
    on_overflow: Literal["end", "error"]
    params: Mapping[str, Any]
    world: AgentGymWorld
    policy: ChatPolicy
    recorder: Recorder
    door: Door
    program: AgentProgram
    folder: Path
    model: str


async def play(stage: ProgramStage, attempt: Attempt) -> dict[str, Any]:
    """The episode's row. Raises InfrastructureError where a server failed, FatalError where one
    refuses for good, ContextOverflowError where a prompt is too long and that is an error."""
    async with stage.world.open(attempt.task_id, attempt.prompt_seed) as session:
        limit = min(stage.max_turns, session.step_limit or stage.max_turns)
        recorded = stage.recorder.open(seed=attempt.seed, most_replies=limit)
        description = _description(stage, attempt, session.observation, limit)
        episode = DoorEpisode(
            recorded=recorded,
            observation=session.observation,
            session=session,
            description=description,
        )
        stage.door.open(episode)
        try:
            wrong = await stage.program.run(
                stage.folder / f"{attempt.position}-{attempt.number}",
                description,
                _variables(stage, attempt, recorded.key),
            )
        finally:
            stage.door.close(episode)
            stage.recorder.close(recorded)
    if episode.failed is not None:
        raise episode.failed
    if recorded.failed is not None:
        raise InfrastructureError(recorded.failed)
    if recorded.overflowed and stage.on_overflow == "error":
        raise ContextOverflowError(f"{attempt.id}: a prompt is longer than the context", status=400)
    return await _row(stage, attempt, episode, wrong)


async def _row(
    stage: ProgramStage, attempt: Attempt, episode: DoorEpisode, wrong: str | None
) -> dict[str, Any]:
    found = await _proved(stage, episode)
    sure = found if isinstance(found, ProvedConversation) else None
    record = episode_record(stage.rules, attempt, episode, sure)
    end, error = episode_end(stage.rules, episode, record, wrong)
    row = record.row(end, error)
    if isinstance(found, Unproved) and end != "error":
        row[UNPROVED] = {"reason": found.reason, "detail": found.detail}
    return row


async def _proved(stage: ProgramStage, episode: DoorEpisode) -> ProvedConversation | Unproved:
    if any(replies == 0 for replies, _ in episode.steps):
        return Unproved("shape", "the program acted before it had a reply")
    return await prove(stage.policy, episode.recorded)


def _description(
    stage: ProgramStage, attempt: Attempt, observation: str, limit: int
) -> dict[str, Any]:
    messages: list[Message] = opening_messages(stage.rules.prompt, observation)
    return {
        "task": attempt.task_id,
        "attempt": attempt.number,
        "observation": observation,
        "messages": messages,
        "observation_prefix": stage.rules.prompt.observation_prefix,
        "most_replies": limit,
        "params": dict(stage.params),
        "model": stage.model,
    }


def _variables(stage: ProgramStage, attempt: Attempt, key: str) -> dict[str, str]:
    return {
        "OPENAI_BASE_URL": f"{stage.recorder.url}/v1",
        "OPENAI_API_KEY": key,
        "AGENTC_MODEL": stage.model,
        "AGENTC_ENVIRONMENT_URL": f"{stage.recorder.url}{PATH}",
        "AGENTC_TASK": attempt.task_id,
    }

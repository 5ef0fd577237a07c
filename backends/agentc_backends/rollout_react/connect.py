"""Connects episodes to the leased servers through the client library, and says what failures mean.

A request that a server refuses for what it says is a FatalError; a server that fails or does not
answer is an InfrastructureError; a prompt over the context is a ContextOverflowError.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from agentc_backends import client
from agentc_backends.client.leased import LOCAL_RETRY, chat_client
from agentc_backends.rollout_react.episode import (
    ContextOverflowError,
    FatalError,
    InfrastructureError,
    Reply,
    Step,
)
from agentc_backends.rollout_react.prompt import Message

_CONNECT_TRIES = 3


@dataclass(frozen=True, slots=True)
class Servers:
    """The servers of a job; `policy` is None for a job that leases the environment alone."""

    world: AgentGymWorld
    policy: ChatPolicy | None
    leases: Mapping[str, Mapping[str, Any]]

    async def lost(self) -> str | None:
        """A sentence about a local server that is gone, or None."""
        for role, lease in self.leases.items():
            if _is_local(lease) and not await _accepts(lease["url"]):
                return f"the {role} server at {lease['url']} does not answer any more"
        return None


@asynccontextmanager
async def connect(
    leases: Mapping[str, Mapping[str, Any]],
    decode: Mapping[str, Any] | None,
    concurrency: int,
) -> AsyncIterator[Servers]:
    """Clients of a job's servers; without `decode` of the environment alone."""
    limits = client.RateLimits(concurrency=concurrency)
    lease = leases["environment"]
    environment = client.EnvironmentClient(
        lease["url"], lease["token"] or None, retry=LOCAL_RETRY, limits=limits
    )
    async with environment:
        world = AgentGymWorld(environment)
        if decode is None:
            yield Servers(world, None, {"environment": lease})
            return
        async with chat_client(leases["policy"], concurrency=concurrency) as chat:
            yield Servers(world, ChatPolicy(chat, decode), leases)


class ChatPolicy:
    """Replies of a chat model with fixed decoding settings."""

    def __init__(self, chat: client.ChatClient, decode: Mapping[str, Any]) -> None:
        self._chat = chat
        self._decode = {name: decode[name] for name in ("temperature", "top_p", "max_tokens")}
        self._stop = tuple(decode["stop"])

    async def reply(self, messages: Sequence[Message], seed: int, affinity: str) -> Reply:
        """The next message, stripped; `affinity` keeps an episode on one replica."""
        with _translated():
            answer = await self._chat.chat(
                [{"role": m["role"], "content": m["content"]} for m in messages],
                **self._decode,
                stop=self._stop,
                seed=seed,
                affinity=affinity,
            )
        return Reply(
            _encodable(answer.text).strip(),
            answer.finish_reason,
            answer.prompt_tokens,
            answer.completion_tokens,
        )


class AgentGymWorld:
    """Episodes of an environment that speaks AgentGym's protocol."""

    def __init__(self, environment: client.EnvironmentClient) -> None:
        self._environment = environment

    async def meta(self) -> dict[str, Any]:
        with _translated():
            return await self._environment.meta()

    async def plan(self, task_id: str, prompt_seed: int) -> list[dict[str, str]]:
        """The expert's steps: `action` and, where it has one, `thought`."""
        with _translated():
            return await self._environment.expert(task_id, prompt_seed)

    @asynccontextmanager
    async def open(self, task_id: str, prompt_seed: int) -> AsyncIterator[AgentGymSession]:
        """One episode, closed at the end whatever happens."""
        environment = self._environment
        with _translated():
            number = await environment.create()
            try:
                first = await environment.reset(number, task_id, prompt_seed)
                yield AgentGymSession(environment, number, _encodable(first.observation))
            finally:
                # A session left open costs memory only, and the server lets it expire.
                with suppress(client.ServiceError):
                    await environment.close(number)


class AgentGymSession:
    """One open episode."""

    def __init__(
        self, environment: client.EnvironmentClient, number: int, observation: str
    ) -> None:
        self._environment = environment
        self._number = number
        self.observation = observation

    async def step(self, action: str) -> Step:
        with _translated():
            result = await self._environment.step(self._number, action)
        return Step(_encodable(result.observation), result.reward, result.done)


@contextmanager
def _translated() -> Iterator[None]:
    """The client's exceptions as those of `episode.py`."""
    try:
        yield
    except client.ContextOverflowError as error:
        raise ContextOverflowError(str(error)) from error
    except client.BadRequestError as error:
        raise FatalError(str(error)) from error
    except client.ServiceError as error:
        # An environment's own error leaves the episode's state unknown: play it again.
        raise InfrastructureError(str(error)) from error


def _is_local(lease: Mapping[str, Any]) -> bool:
    return urlsplit(lease["url"]).hostname in ("127.0.0.1", "::1", "localhost")


async def _accepts(url: str) -> bool:
    """Whether something listens at the address. Asking for a page could take as long as the
    server's present work; a dead server refuses at once."""
    parts = urlsplit(url)
    for number in range(_CONNECT_TRIES):
        try:
            opened = asyncio.open_connection(parts.hostname, parts.port)
            _, writer = await asyncio.wait_for(opened, 2.0)
        except (OSError, asyncio.TimeoutError):
            await asyncio.sleep(0.1 * (number + 1))
        else:
            writer.close()
            return True
    return False


def _encodable(text: str) -> str:
    """The text without lone surrogates, which JSON can carry and UTF-8 cannot."""
    return text.encode("utf-8", "replace").decode("utf-8")

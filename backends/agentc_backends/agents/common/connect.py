"""Connects episodes to the leased servers through the client library, or to an environment in this
process, and says what failures mean.

A request that a server refuses for what it says is a FatalError, and so is a reply that holds a
key; a server that fails or does not answer is an InfrastructureError; a prompt over the context is
a ContextOverflowError.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from agentc.program.job import OtherEnvironmentError, admit_inside
from agentc_backends import clients
from agentc_backends.agents.common.episode import Reply, Step, is_cut_by_context
from agentc_backends.agents.common.failures import FatalError
from agentc_backends.agents.common.prompts import Message, model_messages
from agentc_backends.clients.leases import chat_client, environment_client
from agentc_backends.environments.server.inside import InsideEnvironment
from agentc_backends.environments.server.program import NotInsideError, opener_inside

NO_REPLIES: Mapping[str, Any] = {"temperature": 0.0, "top_p": 1.0, "max_tokens": 1, "stop": []}
"""Decoding of a model that only scores what it is given."""
_CONNECT_TRIES = 3


@dataclass(frozen=True, slots=True)
class Servers:
    """The servers of a job; `policy` is None for a job that leases the environment alone."""

    world: AgentGymWorld
    policy: ChatPolicy | None
    leases: Mapping[str, Mapping[str, Any]]

    async def lost(self) -> str | None:
        """A sentence about a local server that is gone, or None."""
        return await lost_server(self.leases)


@asynccontextmanager
async def connect(
    leases: Mapping[str, Mapping[str, Any]],
    decode: Mapping[str, Any] | None,
    concurrency: int,
) -> AsyncIterator[Servers]:
    """Clients of a job's servers; without `decode` of the environment alone. Raises FatalError
    where the environment cannot be opened in this process, or is not the one that was planned."""
    lease = leases["environment"]
    environment = await _environment(lease, concurrency)
    try:
        world = AgentGymWorld(environment)
        if decode is None:
            yield Servers(world, None, {"environment": lease})
            return
        async with chat_client(leases["policy"], concurrency=concurrency) as chat:
            yield Servers(world, ChatPolicy(chat, decode), leases)
    finally:
        await environment.close_connections()


async def _environment(lease: Mapping[str, Any], concurrency: int) -> clients.EnvironmentCalls:
    """Over HTTP, or in this process where the lease says how it is opened. The wrapper has looked
    at a server already; what was opened here is looked at here."""
    if "inside" not in lease:
        return environment_client(lease, concurrency=concurrency)
    try:
        environment = InsideEnvironment(opener_inside(lease))
    except NotInsideError as error:
        raise FatalError(
            f"the environment cannot be opened in the job's process: {error}"
        ) from error
    try:
        admit_inside(lease, await environment.meta())
    except OtherEnvironmentError as error:
        raise FatalError(f"the environment {error}") from error
    return environment


class ChatPolicy:
    """Replies of a chat model with fixed decoding settings."""

    def __init__(self, chat: clients.ChatClient, decode: Mapping[str, Any]) -> None:
        self._chat = chat
        self._decode = {name: decode[name] for name in ("temperature", "top_p", "max_tokens")}
        self._stop = tuple(decode["stop"])

    async def reply(self, messages: Sequence[Message], seed: int, affinity: str) -> Reply:
        """The next message, stripped; `affinity` keeps an episode on one replica."""
        with _translated():
            answer = await self._chat.chat(
                model_messages(messages),
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
            cut_by_context=self._cut_by_context(answer),
        )

    async def reply_with_tokens(
        self, messages: Sequence[Message], seed: int, affinity: str
    ) -> Reply:
        """The next message with its tokens and their log-probabilities. Raises FatalError where the
        server does not tell them."""
        with _translated():
            answer = await self._chat.chat(
                model_messages(messages),
                **self._decode,
                stop=self._stop,
                seed=seed,
                logprobs=True,
                token_ids=True,
                affinity=affinity,
            )
        tokens, scores = answer.token_ids, answer.logprobs
        if not tokens or scores is None or len(scores) != len(tokens):
            found = "none" if scores is None else str(len(scores))
            raise FatalError(
                f"the server gave {len(tokens or ())} token ids and {found} log-probabilities of a "
                "reply; candidates need both, one for each token"
            )
        return Reply(
            _encodable(answer.text).strip(),
            answer.finish_reason,
            answer.prompt_tokens,
            answer.completion_tokens,
            tokens,
            # Only the first token of a scored text has none.
            tuple(0.0 if score.logprob is None else score.logprob for score in scores),
            stopped_by=answer.stopped_by,
            cut_by_context=self._cut_by_context(answer),
        )

    def _cut_by_context(self, answer: clients.ChatReply) -> bool:
        most = self._decode["max_tokens"]
        return is_cut_by_context(answer.finish_reason, answer.completion_tokens, most)

    async def score(self, ids: Sequence[int], affinity: str) -> list[float | None]:
        """The log-probability of each token after those before it. Raises ServiceError where the
        server does not tell."""
        return [token.logprob for token in await self._chat.score(ids, affinity=affinity)]

    async def tokenize(self, messages: Sequence[Message], *, opened: bool = True) -> list[int]:
        """The tokens of a prompt; `opened` ends it where a reply begins. Raises ServiceError where
        the server does not tell."""
        return await self._chat.tokenize(messages, add_generation_prompt=opened)

    async def spell(self, text: str) -> list[int]:
        """The tokens of a text by itself. Raises ServiceError as `tokenize`."""
        return await self._chat.tokenize(text)

    async def prefix_tokens(self, messages: Sequence[Message]) -> list[int]:
        """The tokens of a conversation up to the last letter of its last message, which is not
        ended; none where the format has no such beginning. Raises ServiceError as `tokenize`."""
        try:
            return await self._chat.tokenize(
                messages, add_generation_prompt=False, continue_final_message=True
            )
        except clients.BadRequestError:
            return []


class AgentGymWorld:
    """Episodes of an environment that speaks AgentGym's protocol."""

    def __init__(self, environment: clients.EnvironmentCalls) -> None:
        self._environment = environment

    async def meta(self) -> dict[str, Any]:
        with _translated():
            return await self._environment.meta()

    async def plan(self, task_id: str, prompt_seed: int) -> list[dict[str, str]]:
        """The expert's steps: `action` and, where it has one, `thought`."""
        with _translated():
            return await self._environment.expert(task_id, prompt_seed)

    async def begin(self, task_id: str, prompt_seed: int) -> AgentGymSession:
        """A new session at the start of a task; the caller closes it."""
        environment = self._environment
        with _translated():
            number = await environment.create()
            session = AgentGymSession(environment, number, "")
            try:
                await session.restart(task_id, prompt_seed)
            except BaseException:
                await session.close()
                raise
        return session

    async def restored(self, snapshot: Mapping[str, Any]) -> AgentGymSession:
        """A new session in a saved state; the caller closes it."""
        with _translated():
            number = await self._environment.restore(snapshot)
        return AgentGymSession(self._environment, number, "")

    @asynccontextmanager
    async def open(self, task_id: str, prompt_seed: int) -> AsyncIterator[AgentGymSession]:
        """One episode, closed at the end whatever happens."""
        session = await self.begin(task_id, prompt_seed)
        with _translated():
            try:
                yield session
            finally:
                await session.close()


class AgentGymSession:
    """One open episode; `observation` is its first. Beyond `step`, which every environment has,
    tree search saves, restores and forks the state where `/meta` says that it can be done."""

    def __init__(
        self, environment: clients.EnvironmentCalls, number: int, observation: str
    ) -> None:
        self._environment = environment
        self._number = number
        self.observation = observation
        self.step_limit: int | None = None

    async def step(self, action: str) -> Step:
        with _translated():
            result = await self._environment.step(self._number, action)
        return Step(_encodable(result.observation), result.reward, result.done, result.report)

    async def restart(self, task_id: str, prompt_seed: int) -> None:
        """Go (back) to the start of a task."""
        with _translated():
            first = await self._environment.reset(self._number, task_id, prompt_seed)
        self.observation = _encodable(first.observation)
        self.step_limit = first.step_limit

    async def snapshot(self) -> Mapping[str, Any]:
        with _translated():
            return await self._environment.snapshot(self._number)

    async def restore(self, snapshot: Mapping[str, Any]) -> None:
        with _translated():
            await self._environment.restore(snapshot, self._number)

    async def fork(self) -> AgentGymSession:
        """A new session in the same state; the caller closes it."""
        with _translated():
            number = await self._environment.fork(self._number)
        return AgentGymSession(self._environment, number, "")

    async def close(self) -> None:
        # A session left open costs memory only, and the server lets it expire.
        with suppress(clients.ServiceError):
            await self._environment.close(self._number)


async def lost_server(leases: Mapping[str, Mapping[str, Any]]) -> str | None:
    """A sentence about a leased server of ours none of whose copies answers, or None."""
    for role, lease in leases.items():
        if not _is_ours(lease):
            continue
        urls = lease.get("urls") or [lease["url"]]
        if not any([await _accepts(url) for url in urls]):
            return f"the {role} server at {' and '.join(urls)} does not answer any more"
    return None


@contextmanager
def _translated() -> Iterator[None]:
    """The client's exceptions as players tell them apart."""
    try:
        yield
    except (clients.ContextOverflowError, clients.InfrastructureError):
        raise
    except (clients.BadRequestError, clients.EchoedSecretError) as error:
        raise FatalError(str(error)) from error
    except clients.ServiceError as error:
        # An environment's own error leaves the episode's state unknown: play it again.
        raise clients.InfrastructureError(str(error)) from error


def _is_ours(lease: Mapping[str, Any]) -> bool:
    """A server of this machine or of this run; an environment in this process is none."""
    if "inside" in lease:
        return False
    if "log" in lease:
        return True
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

"""A model in training as the policy of episodes: `play` of a rollout asks it as it asks a server.

Episodes are drawn together, a token of each at a time, by one engine that keeps what they have said
so far. Replies are those that the embedded server would give for the same weights and seeds, so an
episode here is one of an `evaluate` stage.
Neighbours: `sampling.py`, `best_of.py`, `agents/rollout/episode.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from agentc_backends.agents.common.episode import Reply, is_cut_by_context
from agentc_backends.agents.common.prompt import Message
from agentc_backends.clients.errors import ContextOverflowError
from agentc_backends.engine.reply_text import before_stops, decode, stop_test
from agentc_backends.openai_api.chat_text import ChatText
from agentc_backends.trainers.online_rl.best_of import BestOf
from agentc_backends.trainers.online_rl.sampling import Decode, DrawRequest, Sampled, Sampler


@dataclass(frozen=True, slots=True)
class Said:
    """One reply as the policy gave it, in tokens: what is trained is what was drawn."""

    prompt: tuple[int, ...]
    reply: tuple[int, ...]
    cut: bool


@dataclass(slots=True)
class LivePolicy:
    """Answers conversations while `acting` is entered. `said` has each episode's replies in order,
    by the name that it gave as affinity. `context` is the model's, in tokens. With a `choice` each
    reply is that one's of several, which are drawn as the server draws a request's choices."""

    sampler: Sampler
    chat: ChatText
    tokenizer: Any
    decode: Decode
    context: int
    stops: tuple[str, ...] = ()
    choice: BestOf | None = None
    said: dict[str, list[Said]] = field(default_factory=dict)
    _waiting: list[tuple[DrawRequest, asyncio.Future[Sampled]]] = field(default_factory=list)
    _asked: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        if self.stops:
            test = stop_test(self.tokenizer, self.stops)
            self.decode = replace(self.decode, finished=test)

    async def reply(self, messages: Sequence[Message], seed: int, affinity: str) -> Reply:
        """The next message, stripped. Raises ContextOverflowError for a prompt that leaves no room
        for a reply."""
        prompt = self.chat.encode_row(messages)
        room = self.context - len(prompt)
        if room <= 0:
            raise ContextOverflowError(f"{len(prompt)} tokens, of {self.context} of the model")
        drawn = await self._drawn(prompt, seed, room)
        self.said.setdefault(affinity, []).append(Said(tuple(prompt), drawn.ids, drawn.cut))
        text = decode(self.tokenizer, drawn.ids, special=False)
        text, stopped = before_stops(text, self.stops)
        stop = "length" if drawn.cut and not stopped else "stop"
        cut = is_cut_by_context(stop, len(drawn.ids), self.decode.max_tokens)
        return Reply(text.strip(), stop, len(prompt), len(drawn.ids), drawn.ids, cut_by_context=cut)

    async def _drawn(self, prompt: Sequence[int], seed: int, room: int) -> Sampled:
        candidates = 1 if self.choice is None else self.choice.candidates
        loop = asyncio.get_running_loop()
        futures: list[asyncio.Future[Sampled]] = []
        for number in range(candidates):
            futures.append(loop.create_future())
            self._waiting.append((DrawRequest(prompt, (seed, number), room), futures[-1]))
        self._asked.set()
        drawn = await asyncio.gather(*futures)
        if self.choice is None:
            return drawn[0]
        return drawn[self.choice.pick(prompt, [each.ids for each in drawn])]

    @asynccontextmanager
    async def acting(self) -> AsyncIterator[None]:
        """Draws what is asked for inside of the block."""
        task = asyncio.create_task(self._serve())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _serve(self) -> None:
        while True:
            await self._asked.wait()
            under_way: set[asyncio.Future[Sampled]] = set()
            try:
                await self._draw(under_way)
            except Exception as error:  # as no memory: whoever waits is told, others may come
                self._asked.clear()
                waiting, self._waiting = self._waiting, []
                for future in [*under_way, *(each for _, each in waiting)]:
                    if not future.done():
                        future.set_exception(error)

    async def _draw(self, under_way: set[asyncio.Future[Sampled]]) -> None:
        """Until cancelled. Who is drawn beside whom changes how long it takes, and no reply; so an
        episode that has its reply goes on, and comes with the next, while others are drawn."""
        with self.sampler.drawing() as steps:
            while True:
                # Every episode that can go on comes to its next reply first.
                before = -1
                while before < len(self._waiting):
                    before = len(self._waiting)
                    await asyncio.sleep(0)
                waiting, self._waiting = self._waiting, []
                self._asked.clear()
                under_way.update(future for _, future in waiting)  # whom an error is told
                for request, future in waiting:
                    steps.begin(request, self.decode, partial(_give, under_way, future))
                if not steps.advance():
                    await self._asked.wait()


def _give(
    under_way: set[asyncio.Future[Sampled]], future: asyncio.Future[Sampled], drawn: Sampled
) -> None:
    under_way.remove(future)
    if not future.done():  # its episode may have been cancelled
        future.set_result(drawn)

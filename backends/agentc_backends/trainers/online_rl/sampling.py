"""Replies of a model that is being trained, from the embedded server's engine in this process.

What a reply is follows from weights, prompt and key alone, not from who is in the batch beside it:
a run that is resumed draws the same ones. Neighbour: `actor_step.py`, which changes the weights.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy
import torch

from agentc_backends.agents.common.episode import Reply, is_cut_by_context
from agentc_backends.agents.common.prompts import Message
from agentc_backends.clients.errors import ContextOverflowError
from agentc_backends.engine.decoding import before_stops, decode, stop_test
from agentc_backends.engine.generation import Engine, EngineLimits, EngineRequest
from agentc_backends.engine.model import ATTENTION_NAME, Checkpoint, use_ragged_attention
from agentc_backends.openai_api.chat_text import ChatText
from agentc_backends.trainers.online_rl.critic import BestOf

_TRAINED = "sdpa"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decode:
    """How replies are drawn: `temperature` 0 takes the likeliest token; a reply ends with one of
    `ends`, which it keeps, where `finished` says so of its tokens, or is cut at `max_tokens`."""

    temperature: float = 1.0
    top_p: float = 1.0
    max_tokens: int
    ends: frozenset[int]
    finished: Callable[[list[int]], bool] | None = None


@dataclass(frozen=True, slots=True)
class Sampled:
    """A reply's tokens; `cut` where the limit ended it."""

    ids: tuple[int, ...]
    cut: bool


@dataclass(frozen=True, slots=True)
class DrawRequest:
    """A prompt and the key of its noise: (seed, choice). `room` is how many tokens its reply may
    have, where that is less than for others."""

    prompt: Sequence[int]
    key: tuple[int, int]
    room: int | None = None


class DrawSteps:
    """Replies under way, a token at a time; more may begin between two steps. Made by `Sampler`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._coming: list[EngineRequest] = []

    def begin(self, asked: DrawRequest, decode: Decode, done: Callable[[Sampled], None]) -> None:
        """`done` is called by a step."""
        self._coming.append(
            EngineRequest(
                prompt=numpy.array(asked.prompt, numpy.int32),
                max_tokens=min(decode.max_tokens, asked.room or decode.max_tokens),
                done=lambda ended: done(Sampled(tuple(ended.tokens), not ended.ended)),
                temperature=decode.temperature,
                top_p=decode.top_p,
                key=asked.key,
                ends=decode.ends,
                finished=decode.finished,
            )
        )

    def advance(self) -> bool:
        """A step of all of them; whether any are left."""
        coming, self._coming = self._coming, []
        return self._engine.advance(coming)


class Sampler:
    """Draws from a model in float32 on the CPU. Between two draws its weights may change."""

    def __init__(self, model: Any, limits: EngineLimits | None = None) -> None:
        """Raises UnsupportedModelError for a model that ragged batches do not compute."""
        self._model = model
        self._limits = limits or EngineLimits(max_batch_tokens=2048, max_sequences=256)
        with torch.inference_mode():
            self._geometry = use_ragged_attention(model)
        model.set_attn_implementation(_TRAINED)

    def draw(self, asked: Sequence[DrawRequest], decode: Decode) -> list[Sampled]:
        """A reply for each prompt, in their order."""
        found: dict[int, Sampled] = {}
        with self.drawing() as steps:
            for number, one in enumerate(asked):
                steps.begin(one, decode, partial(found.__setitem__, number))
            while steps.advance():
                pass
        return [found[number] for number in range(len(asked))]

    @contextmanager
    def drawing(self) -> Iterator[DrawSteps]:
        """Steps with the weights of now, which nobody may change inside of the block: what prompts
        share is computed once in it. A new engine for each, so no prefix outlives its weights."""
        with self._serving():
            yield DrawSteps(Engine(self._checkpoint(), self._limits, self._context()))

    @contextmanager
    def _serving(self) -> Iterator[None]:
        """The model under the engine's attention, and without dropout."""
        training = self._model.training
        self._model.eval()
        self._model.set_attn_implementation(ATTENTION_NAME)
        try:
            yield
        finally:
            self._model.set_attn_implementation(_TRAINED)
            self._model.train(training)

    def _checkpoint(self) -> Checkpoint:
        return Checkpoint(
            root="",
            model=self._model,
            tokenizer=None,
            geometry=self._geometry,
            vocabulary=int(self._model.get_output_embeddings().weight.shape[0]),
            longest_token=0,
            context=self._context(),
            ends=frozenset(),
        )

    def _context(self) -> int:
        return int(self._model.config.get_text_config().max_position_embeddings)


@dataclass(frozen=True, slots=True)
class TurnTokens:
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
    said: dict[str, list[TurnTokens]] = field(default_factory=dict)
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
        self.said.setdefault(affinity, []).append(TurnTokens(tuple(prompt), drawn.ids, drawn.cut))
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

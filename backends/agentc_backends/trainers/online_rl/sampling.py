"""Replies of a model in training, by the embedded server's engine in this process: of prompts
(`Sampler`), and as the policy of episodes (`LivePolicy`), which a rollout calls like a server.

A reply depends on the weights, the prompt and the key only, not on the rest of the batch, so a
resumed run draws the same replies, and the embedded server would give them too: an episode here is
one of an `evaluate` stage.
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
    """How replies are drawn. `temperature` 0 is greedy. A reply ends with one of `ends`, which is
    part of it, where `finished` is true of its tokens, or at `max_tokens`, where it is cut."""

    temperature: float = 1.0
    top_p: float = 1.0
    max_tokens: int
    ends: frozenset[int]
    finished: Callable[[list[int]], bool] | None = None


@dataclass(frozen=True, slots=True)
class Sampled:
    """A reply's tokens; `cut` where a limit ended it."""

    ids: tuple[int, ...]
    cut: bool


@dataclass(frozen=True, slots=True)
class DrawRequest:
    """A prompt and the key of its noise: (seed, choice). `room` is a lower limit for the tokens of
    this reply."""

    prompt: Sequence[int]
    key: tuple[int, int]
    room: int | None = None


class DrawSteps:
    """Draws replies a token at a time; requests may be added between two steps. Created by
    `Sampler`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._new: list[EngineRequest] = []

    def begin(self, request: DrawRequest, decode: Decode, done: Callable[[Sampled], None]) -> None:
        """Add a request; the step that ends its reply calls `done`."""
        self._new.append(
            EngineRequest(
                prompt=numpy.array(request.prompt, numpy.int32),
                max_tokens=min(decode.max_tokens, request.room or decode.max_tokens),
                done=lambda ended: done(Sampled(tuple(ended.tokens), not ended.ended)),
                temperature=decode.temperature,
                top_p=decode.top_p,
                key=request.key,
                ends=decode.ends,
                finished=decode.finished,
            )
        )

    def advance(self) -> bool:
        """One token of every reply; whether any are unfinished."""
        new, self._new = self._new, []
        return self._engine.advance(new)


class Sampler:
    """Draws from a model in float32 on the CPU, whose weights may change between two draws."""

    def __init__(self, model: Any, limits: EngineLimits | None = None) -> None:
        """Raises UnsupportedModelError for a model that ragged batches do not compute."""
        self._model = model
        self._limits = limits or EngineLimits(max_batch_tokens=2048, max_sequences=256)
        with torch.inference_mode():
            self._geometry = use_ragged_attention(model)
        model.set_attn_implementation(_TRAINED)

    def draw(self, requests: Sequence[DrawRequest], decode: Decode) -> list[Sampled]:
        """A reply for each request, in their order."""
        replies: dict[int, Sampled] = {}
        with self.drawing() as steps:
            for number, request in enumerate(requests):
                steps.begin(request, decode, partial(replies.__setitem__, number))
            while steps.advance():
                pass
        return [replies[number] for number in range(len(requests))]

    @contextmanager
    def drawing(self) -> Iterator[DrawSteps]:
        """Steps with the present weights, which must not change inside the block: prefixes that
        prompts share are computed once. Each block has its own engine, so that no cached prefix
        outlives its weights."""
        with self._serving():
            yield DrawSteps(Engine(self._checkpoint(), self._limits, self._context()))

    @contextmanager
    def _serving(self) -> Iterator[None]:
        """The model with the engine's attention and without dropout."""
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
    """A turn in the tokens that were drawn, which are those that are trained; `cut` where a limit
    ended the reply."""

    prompt: tuple[int, ...]
    reply: tuple[int, ...]
    cut: bool


@dataclass(slots=True)
class LivePolicy:
    """Replies to conversations inside `acting`, drawing for all episodes together, a token of each
    at a time. `turns` are each episode's in order, by its `affinity`. `context` is the model's, in
    tokens. With a `choice`, several candidates are drawn, as the server draws a request's choices,
    and it picks one."""

    sampler: Sampler
    chat: ChatText
    tokenizer: Any
    decode: Decode
    context: int
    stops: tuple[str, ...] = ()
    choice: BestOf | None = None
    turns: dict[str, list[TurnTokens]] = field(default_factory=dict)
    _waiting: list[tuple[DrawRequest, asyncio.Future[Sampled]]] = field(default_factory=list)
    _requested: asyncio.Event = field(default_factory=asyncio.Event)

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
        drawn = await self._draw_reply(prompt, seed, room)
        self.turns.setdefault(affinity, []).append(TurnTokens(tuple(prompt), drawn.ids, drawn.cut))
        text = decode(self.tokenizer, drawn.ids, special=False)
        text, stopped = before_stops(text, self.stops)
        stop = "length" if drawn.cut and not stopped else "stop"
        cut = is_cut_by_context(stop, len(drawn.ids), self.decode.max_tokens)
        return Reply(text.strip(), stop, len(prompt), len(drawn.ids), drawn.ids, cut_by_context=cut)

    async def _draw_reply(self, prompt: Sequence[int], seed: int, room: int) -> Sampled:
        candidates = 1 if self.choice is None else self.choice.candidates
        loop = asyncio.get_running_loop()
        futures: list[asyncio.Future[Sampled]] = []
        for number in range(candidates):
            futures.append(loop.create_future())
            self._waiting.append((DrawRequest(prompt, (seed, number), room), futures[-1]))
        self._requested.set()
        drawn = await asyncio.gather(*futures)
        if self.choice is None:
            return drawn[0]
        return drawn[self.choice.pick(prompt, [reply.ids for reply in drawn])]

    @asynccontextmanager
    async def acting(self) -> AsyncIterator[None]:
        """Draw what is requested inside the block."""
        task = asyncio.create_task(self._serve())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _serve(self) -> None:
        while True:
            await self._requested.wait()
            pending: set[asyncio.Future[Sampled]] = set()
            try:
                await self._draw(pending)
            except Exception as error:  # such as no memory: it fails these requests, not later ones
                self._requested.clear()
                waiting, self._waiting = self._waiting, []
                for future in [*pending, *(future for _, future in waiting)]:
                    if not future.done():
                        future.set_exception(error)

    async def _draw(self, pending: set[asyncio.Future[Sampled]]) -> None:
        """Draw until cancelled. The batch does not change replies, so an episode that has its reply
        continues, and adds its next request, while the others' replies are drawn."""
        with self.sampler.drawing() as steps:
            while True:
                # Let every episode that can continue make its next request.
                before = -1
                while before < len(self._waiting):
                    before = len(self._waiting)
                    await asyncio.sleep(0)
                waiting, self._waiting = self._waiting, []
                self._requested.clear()
                pending.update(future for _, future in waiting)
                for request, future in waiting:
                    steps.begin(request, self.decode, partial(_deliver, pending, future))
                if not steps.advance():
                    await self._requested.wait()


def _deliver(
    pending: set[asyncio.Future[Sampled]], future: asyncio.Future[Sampled], drawn: Sampled
) -> None:
    pending.remove(future)
    if not future.done():  # its episode may have been cancelled
        future.set_result(drawn)

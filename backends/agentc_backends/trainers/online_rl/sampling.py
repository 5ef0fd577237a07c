"""Replies of a model that is being trained, from the embedded server's engine in this process.

What a reply is follows from weights, prompt and key alone, not from who is in the batch beside it:
a run that is resumed draws the same ones. Neighbour: `actor_step.py`, which changes the weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy
import torch

from agentc_backends.engine.checkpoint import Checkpoint, take_ragged
from agentc_backends.engine.engine import Engine, EngineLimits, Ongoing
from agentc_backends.engine.ragged import ATTENTION_NAME

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
        self._coming: list[Ongoing] = []

    def begin(self, asked: DrawRequest, decode: Decode, done: Callable[[Sampled], None]) -> None:
        """`done` is called by a step."""
        self._coming.append(
            Ongoing(
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
            self._geometry = take_ragged(model)
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

"""`TextModel` over the engine: tokens in and out, stop texts, futures, reload.

Neighbours: `engine.py` (the work), `openai_api` (the HTTP surface).
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy

from agentc_backends.openai_api.text_model import Choice, Sampling, StoppedError, TokenScore
from agentc_backends.transformers_server.chat_text import ChatText
from agentc_backends.transformers_server.checkpoint import Checkpoint, load_checkpoint
from agentc_backends.transformers_server.engine import Engine, Limits, Ongoing

_Done: TypeAlias = Callable[[Ongoing, Exception | None], None]

_WINDOW_TOKENS = 16
"""Tokens decoded beyond the longest stop text when looking for one (a token may hold a part of a
character only)."""


class ServedModel:
    """A checkpoint behind an engine. Made on the event loop's thread."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        limits: Limits,
        *,
        max_model_len: int | None,
        dtype: str,
        on_crash: Callable[[], None] | None = None,
    ) -> None:
        if max_model_len is not None and max_model_len > checkpoint.context:
            raise ValueError(
                f"max_model_len {max_model_len} is beyond the model's context of "
                f"{checkpoint.context} tokens"
            )
        self._checkpoint = checkpoint
        self._chat = ChatText(checkpoint.root, checkpoint.tokenizer)
        self._dtype = dtype
        self._length = max_model_len or checkpoint.context
        self._engine = Engine(checkpoint, limits, self._length, on_crash)
        self._engine.start()

    @property
    def root(self) -> str:
        return self._checkpoint.root

    @property
    def max_model_len(self) -> int:
        return self._length

    @property
    def longest_token(self) -> int:
        return self._checkpoint.longest_token

    @property
    def engine(self) -> Engine:
        return self._engine

    def stop(self) -> None:
        """Fail what is under way with StoppedError."""
        self._engine.stop(StoppedError())

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        ids: list[int] = self._checkpoint.tokenizer(text, add_special_tokens=add_special_tokens)[
            "input_ids"
        ]
        return ids

    def encode_chat(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        add_generation_prompt: bool,
        continue_final_message: bool,
    ) -> list[int]:
        return self._chat.encode(
            messages,
            add_generation_prompt=add_generation_prompt,
            continue_final_message=continue_final_message,
        )

    def decode(self, tokens: Sequence[int]) -> str:
        return self._decode(tokens, special=True)

    def check_tokens(self, tokens: Sequence[int]) -> None:
        size = self._checkpoint.vocabulary
        for token in tokens:
            if not 0 <= token < size:
                raise ValueError(f"token id {token} is outside the vocabulary of {size}")

    async def generate(self, prompt: Sequence[int], sampling: Sampling) -> list[Choice]:
        seed = secrets.randbits(64) if sampling.seed is None else sampling.seed
        ids = numpy.array(prompt, dtype=numpy.int32)
        finished = self._stop_test(sampling.stop) if sampling.stop else None

        def choice(index: int, done: _Done) -> Ongoing:
            return Ongoing(
                prompt=ids,
                max_tokens=sampling.max_tokens,
                done=done,
                temperature=sampling.temperature,
                top_p=sampling.top_p,
                key=(seed, index),
                ends=frozenset() if sampling.ignore_eos else self._checkpoint.ends,
                finished=finished,
                alternatives=sampling.logprobs,
            )

        ended = await self._run([partial(choice, index) for index in range(sampling.n)])
        return [self._choice(sequence, sampling) for sequence in ended]

    async def score(self, tokens: Sequence[int], alternatives: int) -> list[TokenScore]:
        ids = numpy.array(tokens, dtype=numpy.int32)

        def text(done: _Done) -> Ongoing:
            return Ongoing(prompt=ids, max_tokens=0, done=done, alternatives=alternatives)

        (ended,) = await self._run([text])
        return [TokenScore(s.token, s.logprob, s.top) for s in ended.scores]

    async def reload(self, path: str) -> None:
        if not Path(path).is_dir():
            raise ValueError(f"{path} is no directory")
        loop = asyncio.get_running_loop()
        fresh = await loop.run_in_executor(
            None,
            lambda: load_checkpoint(path, self._dtype),
        )
        if fresh.context < self._length:
            raise ValueError(
                f"the model in {path} has a context of {fresh.context} tokens, under the "
                f"{self._length} that are served"
            )
        chat = ChatText(fresh.root, fresh.tokenizer)
        swapped: asyncio.Future[None] = loop.create_future()

        def swap() -> None:
            self._engine.replace(fresh)
            self._checkpoint, self._chat = fresh, chat
            loop.call_soon_threadsafe(swapped.set_result, None)

        self._engine.between_steps(swap)
        await swapped

    async def _run(self, makers: Sequence[Callable[[_Done], Ongoing]]) -> list[Ongoing]:
        """Run sequences to their ends; cancels them when this coroutine is cancelled."""
        loop = asyncio.get_running_loop()
        futures: list[asyncio.Future[Ongoing]] = []
        sequences: list[Ongoing] = []

        def settle(future: asyncio.Future[Ongoing]) -> _Done:
            def resolve(sequence: Ongoing, error: Exception | None) -> None:
                if future.done():
                    return
                if error is None:
                    future.set_result(sequence)
                else:
                    future.set_exception(error)

            def done(sequence: Ongoing, error: Exception | None) -> None:
                loop.call_soon_threadsafe(resolve, sequence, error)

            return done

        try:
            for make in makers:
                future: asyncio.Future[Ongoing] = loop.create_future()
                sequence = make(settle(future))
                self._engine.submit(sequence)
                futures.append(future)
                sequences.append(sequence)
            return list(await asyncio.gather(*futures))
        finally:
            for sequence in sequences:
                sequence.cancelled = True

    def _stop_test(self, stops: tuple[str, ...]) -> Callable[[list[int]], bool]:
        window = max(len(stop.encode()) for stop in stops) + _WINDOW_TOKENS

        def finished(tokens: list[int]) -> bool:
            tail = self._decode(tokens[-window:], special=False)
            return any(stop in tail for stop in stops)

        return finished

    def _choice(self, sequence: Ongoing, sampling: Sampling) -> Choice:
        text = self._decode(sequence.tokens, special=False)
        cuts = [at for stop in sampling.stop if (at := text.find(stop)) >= 0]
        stopped = bool(cuts) or sequence.ended
        return Choice(
            text=text[: min(cuts)] if cuts else text,
            tokens=tuple(sequence.tokens),
            finish_reason="stop" if stopped else "length",
            scores=tuple(TokenScore(s.token, s.logprob, s.top) for s in sequence.scores),
        )

    def _decode(self, tokens: Sequence[int], *, special: bool) -> str:
        tokenizer: Any = self._checkpoint.tokenizer
        text: str = tokenizer.decode(
            list(tokens), skip_special_tokens=not special, clean_up_tokenization_spaces=False
        )
        return text

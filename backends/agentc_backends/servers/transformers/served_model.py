"""`TextModel` over the engine's process: tokens in and out, stop texts, reload.

Neighbours: `engine_client.py` (the work), `openai_api` (the HTTP surface).
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy

from agentc_backends.engine.decoding import before_stops, check_grammar, decode
from agentc_backends.engine.model import load_tokenizer
from agentc_backends.openai_api.chat_text import ChatText
from agentc_backends.openai_api.text_model import (
    Choice,
    ReplyFailedError,
    Sampling,
    TokenScore,
    Told,
)
from agentc_backends.servers.transformers.channel import EngineTask, Loaded, Result
from agentc_backends.servers.transformers.engine_client import EngineClient

if TYPE_CHECKING:
    from agentc_backends.servers.transformers.reranking import Reranker


class ServedModel:
    """A checkpoint behind an engine that has loaded it. With `reranked` each reply is the best of
    several, but at temperature 0, where there is one alone. `structured`: the engine can hold
    replies to a grammar."""

    def __init__(
        self,
        engine: EngineClient,
        loaded: Loaded,
        reranked: Reranker | None = None,
        *,
        structured: bool = False,
    ) -> None:
        self._engine = engine
        self._loaded = loaded
        self._reranked = reranked
        self._structured = structured
        self._tokenizer = load_tokenizer(loaded.root)
        self._chat = ChatText(loaded.root, self._tokenizer)

    @property
    def root(self) -> str:
        return self._loaded.root

    @property
    def max_model_len(self) -> int:
        return self._loaded.length

    @property
    def longest_token(self) -> int:
        return self._loaded.longest_token

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        encoded: Any = self._tokenizer(text, add_special_tokens=add_special_tokens)
        ids: list[int] = encoded["input_ids"]
        return ids

    def encode_chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        add_generation_prompt: bool,
        continue_final_message: bool,
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> list[int]:
        return self._chat.encode(
            messages,
            add_generation_prompt=add_generation_prompt,
            continue_final_message=continue_final_message,
            tools=tools,
        )

    def check_grammar(self, grammar: str) -> None:
        if not self._structured:
            raise ValueError(
                "replies are held to a form only by a server with `structured: true`; this one "
                "can neither demand a call (tool_choice), nor follow a schema (response_format, "
                "strict functions)"
            )
        check_grammar(grammar)

    def decode(self, tokens: Sequence[int]) -> str:
        return decode(self._tokenizer, tokens, special=True)

    def check_tokens(self, tokens: Sequence[int]) -> None:
        size = self._loaded.vocabulary
        for token in tokens:
            if not 0 <= token < size:
                raise ValueError(f"token id {token} is outside the vocabulary of {size}")

    def reply_text(self, tokens: Sequence[int]) -> str:
        return decode(self._tokenizer, tokens, special=False)

    async def generate(
        self, prompt: Sequence[int], sampling: Sampling, told: Told | None = None
    ) -> list[Choice]:
        seed = secrets.randbits(64) if sampling.seed is None else sampling.seed
        ids = _bytes(prompt)
        reranked = self._reranked if sampling.temperature > 0 else None
        if reranked is None:
            keys = [(seed, index) for index in range(sampling.n)]
        else:
            keys = reranked.keys(seed, sampling.n)
        works = [
            EngineTask(
                prompt=ids,
                max_tokens=sampling.max_tokens,
                temperature=sampling.temperature,
                top_p=sampling.top_p,
                key=key,
                ignore_ends=sampling.ignore_eos,
                stops=sampling.stop,
                alternatives=sampling.logprobs,
                grammar=sampling.grammar,
            )
            for key in keys
        ]
        # Which of the candidates is said is known once all of them have ended.
        results = await self._engine.run(works, told if reranked is None else None)
        failure = next((result.failure for result in results if result.failure), None)
        if failure is not None:
            raise ReplyFailedError(failure)
        if reranked is not None:
            results = await reranked.best(prompt, results)
        return [self._choice(result, sampling) for result in results]

    async def score(self, tokens: Sequence[int], alternatives: int) -> list[TokenScore]:
        work = EngineTask(prompt=_bytes(tokens), max_tokens=0, alternatives=alternatives)
        (result,) = await self._engine.run([work])
        return list(result.scores)

    async def reload(self, path: str) -> None:
        if not Path(path).is_dir():
            raise ValueError(f"{path} is no directory")
        loop = asyncio.get_running_loop()
        tokenizer = await loop.run_in_executor(None, load_tokenizer, path)
        chat = ChatText(path, tokenizer)
        reranked = None if self._reranked is None else await self._reranked.of_another(path)
        self._loaded = await self._engine.reload(path)
        self._tokenizer, self._chat, self._reranked = tokenizer, chat, reranked

    def _choice(self, result: Result, sampling: Sampling) -> Choice:
        whole = self.reply_text(result.tokens)
        text, cut = before_stops(whole, sampling.stop)
        return Choice(
            text=text,
            tokens=tuple(result.tokens),
            finish_reason="stop" if cut or result.ended else "length",
            scores=result.scores,
            stop_reason=next((s for s in sampling.stop if whole.startswith(s, len(text))), None)
            if cut
            else None,
        )


def _bytes(tokens: Sequence[int]) -> bytes:
    return numpy.array(tokens, dtype=numpy.int32).tobytes()

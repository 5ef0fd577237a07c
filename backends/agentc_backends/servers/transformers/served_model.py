"""The server's side of the engine's process: `EngineClient` sends it tasks and ends when it does;
`ServedModel` is the `TextModel` over it: tokens in and out, stop texts, reload."""

from __future__ import annotations

import asyncio
import itertools
import os
import secrets
import signal
import socket
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
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
    ServerStoppedError,
    TokenListener,
    TokenScore,
)
from agentc_backends.servers.transformers.channel import (
    Cancel,
    DrawnToken,
    EngineTask,
    Loaded,
    LoadRefusal,
    Reload,
    Result,
    Unpacker,
    pack,
)
from agentc_backends.servers.transformers.engine_process import EngineSettings, fork_engine

if TYPE_CHECKING:
    from agentc_backends.servers.transformers.reranking import Reranker


_PIECE = 1 << 16


class EngineEndedError(Exception):
    """The engine's process has ended by itself; it has written the cause before."""


class EngineClient:
    """One engine's process. `on_loss` is called after its unexpected end has been handed to
    everyone who waits for it."""

    def __init__(self, process: int, channel: socket.socket, on_loss: Callable[[], None]) -> None:
        self.process = process
        self._channel = channel
        self._on_loss = on_loss
        self._numbers = itertools.count()
        self._results: dict[int, asyncio.Future[Result]] = {}
        self._listeners: dict[int, tuple[TokenListener, int]] = {}
        self._reloads: list[asyncio.Future[Loaded]] = []
        self._transport: asyncio.WriteTransport | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: Exception | None = None
        self._reaped = False

    @classmethod
    def start(
        cls, settings: EngineSettings, on_loss: Callable[[], None]
    ) -> tuple[EngineClient, Loaded]:
        """Fork the process and wait until it has loaded its checkpoint. Raises ValueError when
        that cannot be served, EngineEndedError when loading it has ended the process."""
        client = cls(*fork_engine(settings), on_loss)
        unpacker = Unpacker()
        while data := client._channel.recv(_PIECE):
            for message in unpacker.feed(data):
                if isinstance(message, Loaded):
                    return client, message
                assert isinstance(message, LoadRefusal)
                client.reap()
                raise ValueError(message.reason)
        raise EngineEndedError(client.reap())

    async def connect(self) -> None:
        """Listen to the process on the running loop."""
        self._loop = asyncio.get_running_loop()
        self._transport, _ = await self._loop.create_unix_connection(
            lambda: _Listener(self._heard, self._lost), sock=self._channel
        )

    async def run(
        self, works: Iterable[EngineTask], listener: TokenListener | None = None
    ) -> list[Result]:
        """Results in order; `number` is set here. What is left is cancelled with the caller.
        `listener` receives each token of the tasks, by their place among them, as it is drawn."""
        loop = asyncio.get_running_loop()
        streamed = listener is not None
        numbered = [replace(w, number=next(self._numbers), streamed=streamed) for w in works]
        if listener is not None:
            self._listeners.update(
                {w.number: (listener, place) for place, w in enumerate(numbered)}
            )
        waiting = {work.number: loop.create_future() for work in numbered}
        try:
            self._send(*numbered)
            self._results.update(waiting)
            return list(await asyncio.gather(*waiting.values()))
        finally:
            for number in waiting:
                self._listeners.pop(number, None)
            left = [number for number in waiting if self._results.pop(number, None) is not None]
            if left and self._end is None:
                self._send(*map(Cancel, left))

    async def reload(self, path: str) -> Loaded:
        """Serve another directory once nothing is running. Raises ValueError when it cannot be
        served; the old weights then stay."""
        answer: asyncio.Future[Loaded] = asyncio.get_running_loop().create_future()
        self._send(Reload(path))
        self._reloads.append(answer)
        return await answer

    def stop(self) -> None:
        """End the process, and fail everything under way with StoppedError. May be called by a
        handler of signals."""
        if self._end is None:
            self._end = ServerStoppedError()
            self._kill()
            if self._loop is not None and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._fail)

    def reap(self) -> str:
        """Wait for the end of the process, so that what it has used counts as this one's children;
        how it ended."""
        if self._reaped:
            return "the engine has ended"
        _, status = os.waitpid(self.process, 0)
        self._reaped = True
        if os.WIFSIGNALED(status):
            name = signal.Signals(os.WTERMSIG(status)).name
            return f"the engine's process was ended by {name}"
        return f"the engine's process ended with status {os.WEXITSTATUS(status)}"

    def _send(self, *messages: object) -> None:
        if self._end is not None:
            raise self._end
        assert self._transport is not None, "not connected"
        self._transport.write(pack(*messages))

    def _heard(self, message: object) -> None:
        if isinstance(message, DrawnToken):
            if message.number in self._listeners:
                listener, place = self._listeners[message.number]
                listener(place, (message.token,))
            return
        if isinstance(message, Result):
            result = self._results.pop(message.number, None)
            if result is not None and not result.done():
                result.set_result(message)
            return
        # Answers to reloads come in the order of their requests.
        answer = self._reloads.pop(0)
        if answer.done():
            return
        if isinstance(message, Loaded):
            answer.set_result(message)
        elif isinstance(message, LoadRefusal):
            answer.set_exception(ValueError(message.reason))

    def _lost(self) -> None:
        if self._end is not None:
            return
        # It may have closed its socket without ending.
        self._kill()
        cause = self.reap()
        print(cause, file=sys.stderr, flush=True)
        self._end = EngineEndedError(cause)
        self._fail()
        self._on_loss()

    def _fail(self) -> None:
        assert self._end is not None
        waiting: list[asyncio.Future[Any]] = [*self._results.values(), *self._reloads]
        for future in waiting:
            if not future.done():
                future.set_exception(self._end)
        self._results.clear()
        self._reloads.clear()

    def _kill(self) -> None:
        if not self._reaped:
            with suppress(ProcessLookupError):
                os.kill(self.process, signal.SIGKILL)


class _Listener(asyncio.Protocol):
    """Puts together what the process says."""

    def __init__(self, heard: Callable[[object], None], lost: Callable[[], None]) -> None:
        self._heard = heard
        self._lost = lost
        self._unpacker = Unpacker()

    def data_received(self, data: bytes) -> None:
        for message in self._unpacker.feed(data):
            self._heard(message)

    def connection_lost(self, error: Exception | None) -> None:
        self._lost()


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
                "replies are constrained to a form only by a server with `structured: true`; "
                "this one "
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
        self, prompt: Sequence[int], sampling: Sampling, listener: TokenListener | None = None
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
        results = await self._engine.run(works, listener if reranked is None else None)
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
        reranked = None if self._reranked is None else await self._reranked.reload(path)
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

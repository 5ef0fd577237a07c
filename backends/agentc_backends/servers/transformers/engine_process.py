"""The engine in a process of its own, so that it shares no interpreter lock with HTTP.

It takes tasks from its socket between two steps, without another thread, and ends with the server,
however that one ends."""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy
import torch

from agentc.program.child import die_with_parent
from agentc.program.import_report import report
from agentc_backends.engine.decoding import Guide, Guides, stop_test
from agentc_backends.engine.generation import (
    Action,
    ClosedError,
    Engine,
    EngineLimits,
    EngineRequest,
)
from agentc_backends.engine.model import Checkpoint, load_checkpoint
from agentc_backends.openai_api.text_model import TokenScore
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

_PIECE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """What to serve and how; `max_model_len` None is the model's context; `structured`: replies can
    be held to grammars."""

    path: str
    dtype: str
    threads: int
    limits: EngineLimits
    max_model_len: int | None
    structured: bool = False


def fork_engine(settings: EngineSettings) -> tuple[int, socket.socket]:
    """Start it; its process id, and the socket that speaks to it, where `Loaded` or `LoadRefusal`
    comes first. To be called before this process has threads."""
    ours, theirs = socket.socketpair()
    server = os.getpid()
    # What is buffered would be written by both.
    sys.stdout.flush()
    sys.stderr.flush()
    number = os.fork()
    if number:
        theirs.close()
        return number, ours
    status = 1
    try:
        die_with_parent(signal.SIGKILL, server)
        # Signals to the group are the server's business, which ends this process.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        ours.close()
        _serve(theirs, settings)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def _serve(channel: socket.socket, settings: EngineSettings) -> None:
    torch.set_num_threads(settings.threads)
    try:
        checkpoint = load_checkpoint(settings.path, settings.dtype)
        if settings.max_model_len is not None and settings.max_model_len > checkpoint.context:
            raise ValueError(
                f"max_model_len {settings.max_model_len} is beyond the model's context of "
                f"{checkpoint.context} tokens"
            )
        guides = _guides_of(checkpoint) if settings.structured else None
    except ValueError as error:
        channel.sendall(pack(LoadRefusal(str(error))))
        return
    report()
    length = settings.max_model_len or checkpoint.context
    engine = Engine(checkpoint, settings.limits, length)
    inbox = _ChannelInbox(channel, engine, checkpoint, guides, length, settings.dtype)
    channel.sendall(pack(_loaded(checkpoint, length)))
    engine.run(inbox)


def _loaded(checkpoint: Checkpoint, length: int) -> Loaded:
    return Loaded(checkpoint.root, checkpoint.vocabulary, checkpoint.longest_token, length)


def _guides_of(checkpoint: Checkpoint) -> Guides:
    return Guides(checkpoint.tokenizer, checkpoint.vocabulary, checkpoint.ends)


class _ChannelInbox:
    """Work from the socket. Results go back together, when the engine asks for more."""

    def __init__(
        self,
        channel: socket.socket,
        engine: Engine,
        checkpoint: Checkpoint,
        guides: Guides | None,
        length: int,
        dtype: str,
    ) -> None:
        self._channel = channel
        self._engine = engine
        self._checkpoint = checkpoint
        self._length = length
        self._guides = guides
        self._dtype = dtype
        self._unpacker = Unpacker()
        self._arrived = select.poll()
        self._arrived.register(channel, select.POLLIN)
        self._outgoing: list[object] = []
        self._open: dict[int, EngineRequest] = {}

    def take(self, wait: bool) -> Iterator[EngineRequest | Action]:
        if self._outgoing:
            self._send(*self._outgoing)
            self._outgoing.clear()
        while self._arrived.poll(None if wait else 0):
            data = self._channel.recv(_PIECE)
            if not data:
                raise ClosedError
            for message in self._unpacker.feed(data):
                wait = False
                if isinstance(message, EngineTask):
                    yield self._ongoing(message)
                elif isinstance(message, Reload):
                    yield partial(self._reload, message.path)
                elif isinstance(message, Cancel) and message.number in self._open:
                    self._open.pop(message.number).cancelled = True
            if not wait:
                return

    def _ongoing(self, work: EngineTask) -> EngineRequest:
        checkpoint = self._checkpoint
        sequence = self._open[work.number] = EngineRequest(
            prompt=numpy.frombuffer(work.prompt, numpy.int32),
            max_tokens=work.max_tokens,
            done=partial(self._ended, work.number),
            temperature=work.temperature,
            top_p=work.top_p,
            key=work.key,
            ends=frozenset() if work.ignore_ends else checkpoint.ends,
            guide=None if work.grammar is None else self._guide(work.grammar),
            finished=stop_test(checkpoint.tokenizer, work.stops) if work.stops else None,
            drawn=partial(self._drawn, work.number) if work.streamed else None,
            alternatives=work.alternatives,
        )
        return sequence

    def _guide(self, grammar: str) -> Guide:
        assert self._guides is not None, "the server refuses grammars that no engine can follow"
        return self._guides.guide(grammar)

    def _drawn(self, number: int, token: int) -> None:
        self._outgoing.append(DrawnToken(number, token))

    def _ended(self, number: int, sequence: EngineRequest) -> None:
        self._open.pop(number, None)
        scores = tuple(TokenScore(s.token, s.logprob, s.top) for s in sequence.scores)
        self._outgoing.append(
            Result(number, sequence.tokens, sequence.ended, scores, sequence.failure)
        )

    def _reload(self, path: str) -> None:
        try:
            fresh = load_checkpoint(path, self._dtype)
            if fresh.context < self._length:
                raise ValueError(
                    f"the model in {path} has a context of {fresh.context} tokens, under the "
                    f"{self._length} that are served"
                )
            guides = None if self._guides is None else _guides_of(fresh)
        except Exception as error:
            if not isinstance(error, ValueError):
                traceback.print_exc()
            self._send(LoadRefusal(str(error)))
            return
        self._engine.replace(fresh)
        self._checkpoint = fresh
        self._guides = guides
        self._send(_loaded(fresh, self._length))

    def _send(self, *messages: object) -> None:
        try:
            self._channel.sendall(pack(*messages))
        except OSError as error:
            raise ClosedError from error

"""The messages between the server and its engine's process, and how they cross their socket:
pickled, each after its length. Both ends are one program, parted by a fork."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from agentc_backends.openai_api.text_model import TokenScore

_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineTask:
    """One choice of a generation, or a text to score (`max_tokens` 0). `prompt` are the bytes of
    its int32 tokens; the client gives the number."""

    prompt: bytes
    max_tokens: int
    number: int = 0
    temperature: float = 0.0
    top_p: float = 1.0
    key: tuple[int, int] = (0, 0)
    ignore_ends: bool = False
    stops: tuple[str, ...] = ()
    alternatives: int | None = None
    grammar: str | None = None
    streamed: bool = False
    """Whether each token is wanted as it is drawn (`DrawnToken`)."""


@dataclass(frozen=True, slots=True)
class Cancel:
    """Nobody waits for that work any more."""

    number: int


@dataclass(frozen=True, slots=True)
class Reload:
    """Serve the weights in another directory, once nothing is running."""

    path: str


@dataclass(frozen=True, slots=True)
class DrawnToken:
    """The next token of a task whose tokens are streamed."""

    number: int
    token: int


@dataclass(frozen=True, slots=True)
class Result:
    """The end of a work; `ended` by itself, not by its limit. `failure` says why the reply could
    not be held to its grammar, where it could not."""

    number: int
    tokens: list[int]
    ended: bool
    scores: tuple[TokenScore, ...]
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class Loaded:
    """What the served checkpoint is, after the start and after each reload. `length` is the
    longest prompt plus reply that is served."""

    root: str
    vocabulary: int
    longest_token: int
    length: int


@dataclass(frozen=True, slots=True)
class LoadRefusal:
    """Why a directory cannot be served; what was served stays."""

    reason: str


def pack(*messages: object) -> bytes:
    """Messages as they go over the socket."""
    parts = []
    for message in messages:
        body = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        parts += [_LENGTH.pack(len(body)), body]
    return b"".join(parts)


class Unpacker:
    """Puts messages together from the pieces in which they arrive."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterator[object]:
        """The messages that are whole with this piece."""
        self._held += data
        while len(self._held) >= _LENGTH.size:
            end = _LENGTH.size + _LENGTH.unpack_from(self._held)[0]
            if len(self._held) < end:
                break
            body = bytes(self._held[_LENGTH.size : end])
            del self._held[:end]
            yield pickle.loads(body)

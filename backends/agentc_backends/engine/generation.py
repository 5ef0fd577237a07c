"""The engine: admits requests, packs steps, chooses tokens, ends sequences.

Each step is one ragged pass over the next token of every running sequence and pieces of new
prompts, at most `max_batch_tokens` together; texts are scored separately, a piece at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import numpy
import torch
from torch import Tensor

from agentc_backends.engine.decoding import Draw, Guide, GuideError, choose, choose_token, log_probs
from agentc_backends.engine.model import Checkpoint, KeyValues, TokenSegment, forward
from agentc_backends.engine.prefix_cache import (
    PrefixCache,
    Slot,
    Tokens,
    common_length,
)
from agentc_backends.engine.single_sequence import SingleSequencePasses

_WORTH_WAITING = 64
"""A prompt waits for another one's prefill when that saves it more tokens than this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLimits:
    """`max_sequences` run at once; `settle_close_calls` recomputes tokens that float error could
    turn (see `decoding.py`)."""

    max_batch_tokens: int = 512
    max_sequences: int = 64
    cache_bytes: int = 2 << 30
    settle_close_calls: bool = True


@dataclass(frozen=True, slots=True)
class EngineScore:
    """A token, its log-probability (None at the start of a text) and the likeliest ones."""

    token: int
    logprob: float | None
    top: tuple[tuple[int, float], ...] = ()


@dataclass(slots=True, eq=False)
class EngineRequest:
    """A request under way: one choice of a generation, or a text to score (`max_tokens` 0).

    `drawn(token)` hears of each token, `finished(tokens)` says after it whether a stop text has
    come. `done(self)` is called once, between two steps, unless the engine ends before. `guide`
    says which tokens may come next; `failure`, why it could not.
    """

    prompt: Tokens
    max_tokens: int
    done: Callable[[EngineRequest], None]
    temperature: float = 0.0
    top_p: float = 1.0
    key: tuple[int, int] = (0, 0)
    ends: frozenset[int] = frozenset()
    finished: Callable[[list[int]], bool] | None = None
    guide: Guide | None = None
    failure: str | None = None
    drawn: Callable[[int], None] | None = None
    alternatives: int | None = None
    tokens: list[int] = field(default_factory=list)
    scores: list[EngineScore] = field(default_factory=list)
    ended: bool = False
    cancelled: bool = False
    slot: Slot | None = None

    @property
    def scoring(self) -> bool:
        return self.max_tokens == 0


@dataclass(slots=True)
class Counters:
    """Totals since the start, for `docs/design/embedded-server.md` and `/health`."""

    steps: int = 0
    tokens: int = 0
    computed: int = 0
    settled: int = 0


Action: TypeAlias = Callable[[], None]


class ClosedError(Exception):
    """Nothing more will come in."""


class Inbox(Protocol):
    """Where the engine's work comes from."""

    def take(self, wait: bool) -> Iterable[EngineRequest | Action]:
        """What has come in, in order; with `wait`, after waiting for it. An action is carried out
        once nothing is running. Raises ClosedError."""
        ...


class Engine:
    """Runs sequences step by step, on the thread that calls `run`."""

    def __init__(self, checkpoint: Checkpoint, limits: EngineLimits, context: int) -> None:
        self.counters = Counters()
        self._limits = limits
        self._context = context
        self._adopt(checkpoint)
        self._waiting: deque[EngineRequest] = deque()
        self._running: list[EngineRequest] = []
        self._coming: deque[EngineRequest | Action] = deque()

    def run(self, inbox: Inbox) -> None:
        """Work until the inbox is closed, and leave what is under way then."""
        with torch.inference_mode(), suppress(ClosedError):
            while True:
                self._collect(inbox)
                self._admit()
                self._step()

    def run_all(self, requests: Sequence[EngineRequest]) -> None:
        """Run until all of these are done; no others come in meanwhile."""
        self.run(_Delivery(requests))

    def advance(self, requests: Sequence[EngineRequest] = ()) -> bool:
        """Take these in and make one step, for who does something else between two; whether
        anything is left under way."""
        with torch.inference_mode():
            self._waiting.extend(requests)
            self._admit()
            self._step()
        return bool(self._waiting or self._running)

    def replace(self, checkpoint: Checkpoint) -> None:
        """Serve other weights; to be called by an action."""
        self._adopt(checkpoint)

    @property
    def reused_tokens(self) -> int:
        return self._cache.reused_tokens

    @property
    def held_tokens(self) -> int:
        """Capacity of the buffers of keys and values, in tokens."""
        return self._cache.held_tokens

    def _adopt(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint
        self._alone = SingleSequencePasses(checkpoint)
        self._cache = PrefixCache(checkpoint.geometry, self._limits.cache_bytes, self._context)

    def _collect(self, inbox: Inbox) -> None:
        """Take in what has come; waits while there is nothing to do."""
        idle = not (self._coming or self._waiting or self._running)
        self._coming.extend(inbox.take(idle))
        while self._coming:
            item = self._coming[0]
            if isinstance(item, EngineRequest):
                self._waiting.append(item)
            elif self._running or self._waiting:
                break
            else:
                item()
            self._coming.popleft()

    def _admit(self) -> None:
        for sequence in [s for s in self._running if s.cancelled]:
            self._finish(sequence)
        deferred: deque[EngineRequest] = deque()
        while self._waiting and len(self._running) < self._limits.max_sequences:
            sequence = self._waiting.popleft()
            if sequence.cancelled:
                continue
            if self._better_later(sequence):
                deferred.append(sequence)
                continue
            if sequence.scoring:
                store = KeyValues.allocate(self._checkpoint.geometry, len(sequence.prompt))
                sequence.slot = Slot(store, numpy.empty(len(sequence.prompt), numpy.int32))
            else:
                room = len(sequence.prompt) + sequence.max_tokens
                sequence.slot = self._cache.open(sequence.prompt, room)
            if sequence.slot is None:
                self._waiting.appendleft(sequence)
                break
            self._running.append(sequence)
        deferred.extend(self._waiting)
        self._waiting = deferred

    def _better_later(self, sequence: EngineRequest) -> bool:
        """Whether a prompt that is being computed right now shares much more than is at hand."""
        if sequence.scoring:
            return False
        to_come = 0
        for other in self._running:
            assert other.slot is not None
            missing = len(other.prompt) - other.slot.length
            if not other.scoring and missing > _WORTH_WAITING:
                to_come = max(to_come, common_length(other.prompt, sequence.prompt))
        if to_come <= _WORTH_WAITING:
            return False
        return to_come > self._cache.shared_length(sequence.prompt) + _WORTH_WAITING

    def _step(self) -> None:
        text = next((each for each in self._running if each.scoring), None)
        if text is not None:
            self._score(text)
        parts = self._pack()
        if not parts:
            return
        rows: list[int] = []
        at = 0
        for sequence, segment in parts:
            at += len(segment.tokens)
            if segment.end >= len(sequence.prompt):
                rows.append(at - 1)
        segments = [segment for _, segment in parts]
        logits = forward(self._checkpoint.model, segments, torch.tensor(rows, dtype=torch.long))
        self.counters.steps += 1
        self.counters.computed += at
        self._advance(parts, logits)

    def _pack(self) -> list[tuple[EngineRequest, TokenSegment]]:
        """The next token of each sequence that decodes, then prompts in the order of arrival."""
        budget = self._limits.max_batch_tokens
        decoding: list[EngineRequest] = []
        filling: list[EngineRequest] = []
        for sequence in self._running:
            if sequence.scoring:
                continue
            assert sequence.slot is not None
            pending = len(sequence.prompt) + len(sequence.tokens) - sequence.slot.length
            (decoding if sequence.tokens and pending == 1 else filling).append(sequence)
        parts = []
        for sequence in [*decoding, *filling]:
            slot = sequence.slot
            assert slot is not None
            if sequence.tokens:
                tokens = [sequence.tokens[-1]]
            else:
                piece = sequence.prompt[slot.length : slot.length + max(budget, 0)]
                tokens = piece.tolist()
            if tokens:
                parts.append((sequence, TokenSegment(slot.store, slot.length, tokens)))
                budget -= len(tokens)
        return parts

    def _advance(self, parts: Sequence[tuple[EngineRequest, TokenSegment]], logits: Tensor) -> None:
        drawing: list[EngineRequest] = []
        for sequence, segment in parts:
            assert sequence.slot is not None
            sequence.slot.extend(segment.tokens)
            if segment.end >= len(sequence.prompt):
                drawing.append(sequence)
        if drawing:
            self._draw(drawing, logits)

    def _draw(self, sequences: list[EngineRequest], logits: Tensor) -> None:
        draws = [Draw(s.temperature, s.top_p, s.key, len(s.tokens)) for s in sequences]
        allowed = self._allowed(sequences)
        chosen = choose(logits, draws, allowed)
        tokens = list(chosen.tokens)
        if self._limits.settle_close_calls:
            for i, close in enumerate(chosen.close):
                if close:
                    whole = [*sequences[i].prompt.tolist(), *sequences[i].tokens]
                    tokens[i] = choose_token(self._alone.after(whole), draws[i], allowed.get(i))
                    self.counters.settled += 1
        self.counters.tokens += len(tokens)
        for sequence, token in zip(sequences, tokens, strict=True):
            if sequence.failure is not None:
                self._finish(sequence)
                continue
            if sequence.guide is not None:
                sequence.guide.accept(token)
            sequence.tokens.append(token)
            if sequence.drawn is not None:
                sequence.drawn(token)
            sequence.ended = token in sequence.ends or (
                sequence.finished is not None and sequence.finished(sequence.tokens)
            )
            if sequence.ended or len(sequence.tokens) >= sequence.max_tokens:
                self._finish(sequence)

    def _allowed(self, sequences: Sequence[EngineRequest]) -> dict[int, Tensor]:
        """Which tokens may come next, for those of the sequences that are held to something."""
        found: dict[int, Tensor] = {}
        for row, sequence in enumerate(sequences):
            if sequence.guide is not None:
                try:
                    found[row] = sequence.guide.allowed()
                except GuideError as error:
                    sequence.failure = str(error)
        return found

    def _score(self, sequence: EngineRequest) -> None:
        """The next piece of a text."""
        slot = sequence.slot
        assert slot is not None
        start, tokens = slot.length, sequence.prompt.tolist()
        values = log_probs(self._alone.next_piece(slot.store, tokens, start))
        slot.extend(tokens[start : start + len(values)])
        self.counters.steps += 1
        self.counters.computed += len(values)
        if start == 0:
            sequence.scores.append(EngineScore(tokens[0], None))
        for token, row in zip(tokens[start + 1 :], values, strict=False):
            sequence.scores.append(_scored(token, row, sequence.alternatives))
        if slot.length == len(tokens):
            self._finish(sequence)

    def _report(self, sequence: EngineRequest) -> None:
        """Score the tokens of a reply."""
        for logits in self._alone.of_reply(sequence.prompt, sequence.tokens):
            for row in log_probs(logits):
                token = sequence.tokens[len(sequence.scores)]
                sequence.scores.append(_scored(token, row, sequence.alternatives))

    def _finish(self, sequence: EngineRequest) -> None:
        self._running.remove(sequence)
        assert sequence.slot is not None
        if not sequence.scoring:
            self._cache.close(sequence.slot, keep=True)
            finished = not (sequence.cancelled or sequence.failure)
            if sequence.alternatives is not None and finished:
                self._report(sequence)
        sequence.done(sequence)


def _scored(token: int, row: Tensor, alternatives: int | None) -> EngineScore:
    top: tuple[tuple[int, float], ...] = ()
    if alternatives:
        best = row.topk(min(alternatives, row.shape[0]))
        top = tuple(zip(best.indices.tolist(), best.values.tolist(), strict=True))
    return EngineScore(token, float(row[token]), top)


class _Delivery:
    """An inbox with one delivery: when that is done the engine is idle, and ends."""

    def __init__(self, requests: Sequence[EngineRequest]) -> None:
        self._requests = requests

    def take(self, wait: bool) -> Iterable[EngineRequest | Action]:
        requests, self._requests = self._requests, ()
        if wait and not requests:
            raise ClosedError
        return requests

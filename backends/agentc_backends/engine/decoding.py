"""Chooses the next token of each sequence, the same one whatever else is in the batch; restricts it
to a grammar; and turns tokens into a reply's text.

A token is argmax(logit + temperature * Gumbel noise), with noise from a counter-based generator
(Philox) keyed by (seed, choice) at the token's position: Gumbel-max sampling, exact for the
softmax at that temperature. Floating-point sums differ in their last bits with the shape of a
batch, so a choice that such a difference could turn is not made here but reported as `close`;
`generation.py` makes it from logits computed for that sequence only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy
import torch
from torch import Tensor
from torch.nn import functional

RELATIVE_ERROR = 3e-5
"""Bound on how far two float32 passes over the same tokens differ, relative to the largest
logit; measured differences stay below a fifth of it (docs/design/embedded-server.md)."""


@dataclass(frozen=True, slots=True)
class Draw:
    """What decides one token. `key` is (seed, index of the choice), `position` counts the
    generated tokens of this choice."""

    temperature: float
    top_p: float
    key: tuple[int, int]
    position: int


@dataclass(frozen=True, slots=True)
class TokenChoices:
    tokens: list[int]
    close: list[bool]


def choose(
    logits: Tensor, draws: Sequence[Draw], allowed: Mapping[int, Tensor] | None = None
) -> TokenChoices:
    """One token for each row of logits [rows, vocabulary]; `close` marks those to be settled.
    `allowed` holds rows to the tokens that may come, as if the model gave the others none."""
    slack = RELATIVE_ERROR * logits.abs().amax(dim=1)
    if allowed:
        logits = logits.clone()
        for row, mask in allowed.items():
            logits[row].masked_fill_(~mask, float("-inf"))
    scores = _perturbed(logits, draws)
    nucleus = [i for i, draw in enumerate(draws) if draw.top_p < 1.0 and draw.temperature > 0.0]
    certain = torch.ones_like(scores, dtype=torch.bool)
    if nucleus:
        wide, narrow = _nuclei(logits[nucleus], [draws[i] for i in nucleus], slack[nucleus])
        scores[nucleus] = scores[nucleus].masked_fill(~wide, float("-inf"))
        certain[nucleus] = narrow
    best = scores.topk(min(2, scores.shape[1]), dim=1)
    tokens = best.indices[:, 0]
    # Both of the two scores may be off.
    gap = best.values[:, 0] - best.values[:, -1]
    close = (gap <= 2 * slack) | ~certain.gather(1, tokens[:, None])[:, 0]
    return TokenChoices(tokens.tolist(), close.tolist())


def choose_token(logits: Tensor, draw: Draw, allowed: Tensor | None = None) -> int:
    """The token for logits [vocabulary] that are a function of the sequence alone; ties go to the
    lower id. `allowed` as in `choose`."""
    if allowed is not None:
        logits = logits.masked_fill(~allowed, float("-inf"))
    scores = _perturbed(logits[None], [draw])[0]
    if draw.top_p < 1.0 and draw.temperature > 0.0:
        ordered, order = (logits.double() / draw.temperature).sort(descending=True, stable=True)
        mass = ordered.softmax(0)
        kept = order[mass.cumsum(0) - mass < draw.top_p]
        outside = torch.ones_like(scores, dtype=torch.bool)
        outside[kept] = False
        scores = scores.masked_fill(outside, float("-inf"))
    return int((scores == scores.max()).nonzero()[0, 0])


def log_probs(logits: Tensor) -> Tensor:
    """Natural-log probabilities [rows, vocabulary] of the model's own distribution."""
    return torch.log_softmax(logits, dim=-1)


def _perturbed(logits: Tensor, draws: Sequence[Draw]) -> Tensor:
    """Logits plus temperature times Gumbel noise; greedy rows are left as they are."""
    drawn = [i for i, draw in enumerate(draws) if draw.temperature > 0.0]
    if not drawn:
        return logits.clone()
    noise = gumbel([(draws[i].key, draws[i].position) for i in drawn], logits.shape[1])
    scale = torch.tensor([draws[i].temperature for i in drawn])[:, None]
    if len(drawn) == len(draws):
        return torch.addcmul(logits, scale, noise)
    scores = logits.clone()
    scores[drawn] = torch.addcmul(logits[drawn], scale, noise)
    return scores


def gumbel(places: Sequence[tuple[tuple[int, int], int]], size: int) -> Tensor:
    """Standard Gumbel noise [places, size], each row a function of its (key, position) alone."""
    raw = numpy.empty((len(places), size), numpy.uint64)
    # One generator is put from place to place: a new one asks the system for entropy that nobody
    # reads, which takes as long as the noise of a small vocabulary.
    generator = numpy.random.Philox(key=0)
    state = generator.state
    at = state["state"]
    for row, (key, position) in enumerate(places):
        # Through an array, as Philox reads its key: beside a small word it rounds a large one.
        at["key"][:] = numpy.asarray([part % 2**64 for part in key]).astype(numpy.uint64)
        at["counter"][2] = position
        generator.state = state
        raw[row] = generator.random_raw(size)
    # 53 bits, moved off both ends of the interval so that both logarithms are finite.
    uniform = ((raw >> numpy.uint64(11)) + 0.5) * 2.0**-53
    return torch.from_numpy((-numpy.log(-numpy.log(uniform))).astype(numpy.float32))


def _nuclei(logits: Tensor, draws: Sequence[Draw], slack: Tensor) -> tuple[Tensor, Tensor]:
    """Masks of tokens that may be in the nucleus, and of those that surely are."""
    temperature = torch.tensor([draw.temperature for draw in draws], dtype=torch.float64)[:, None]
    top_p = torch.tensor([draw.top_p for draw in draws], dtype=torch.float64)[:, None]
    slack = slack.double()[:, None]
    ordered = logits.double().sort(dim=1, descending=True).values
    mass = (ordered / temperature).softmax(1)
    before = mass.cumsum(1) - mass
    # A mass is off by at most twice the relative error of exp(slack / temperature).
    blur = 2 * torch.expm1(slack / temperature)
    widest = (before < top_p + blur).sum(1, keepdim=True) - 1
    narrowest = ((before < top_p - blur).sum(1, keepdim=True) - 1).clamp_min(0)
    wide = logits.double() >= ordered.gather(1, widest) - 2 * slack
    edge = ordered.gather(1, narrowest)
    beyond = functional.pad(ordered, (0, 1), value=float("-inf")).gather(1, narrowest + 1)
    # The last token inside may change places with the first outside when they are that near.
    cut = torch.where(edge - beyond > 2 * slack, edge - slack, edge + 2 * slack)
    return wide, logits.double() > cut


# Grammars are followed by llguidance, which only the software stack `structured` has: it is
# imported where it is needed.


class GuideError(Exception):
    """A reply that cannot go on as its grammar demands."""


class Guides:
    """Makes guides for one checkpoint's tokens. `ends` are the ids that may end a reply, once its
    grammar is fulfilled. Raises ValueError for a tokenizer that the library cannot read."""

    def __init__(self, tokenizer: Any, vocabulary: int, ends: Iterable[int]) -> None:
        try:
            from llguidance.hf import from_tokenizer
        except ImportError as error:
            raise ValueError(
                "to hold replies to a form takes llguidance, which is in the software stack "
                f"`structured` and not in this one: {error}"
            ) from error
        self._vocabulary = vocabulary
        self._tokens = from_tokenizer(tokenizer, n_vocab=vocabulary, eos_token=sorted(ends))

    def guide(self, grammar: str) -> Guide:
        """One reply's. The grammar has been checked (`check_grammar`)."""
        from llguidance import LLMatcher

        return Guide(LLMatcher(self._tokens, grammar), self._vocabulary)


class Guide:
    """Where one reply stands in its grammar."""

    def __init__(self, matcher: Any, vocabulary: int) -> None:
        self._matcher = matcher
        self._vocabulary = vocabulary

    def allowed(self) -> Tensor:
        """Which tokens may come next [vocabulary]. Raises GuideError when none may, or when to
        find out takes more than the library allows."""
        mask = numpy.frombuffer(self._matcher.compute_bitmask(), numpy.uint8)
        bits = numpy.unpackbits(mask, bitorder="little", count=self._vocabulary)
        if self._matcher.is_error() or not bits.any():
            why = self._matcher.get_error() or "no token may come next"
            raise GuideError(f"the reply cannot follow the requested form: {why}")
        return torch.from_numpy(bits).bool()

    def accept(self, token: int) -> None:
        """Go on behind a token that was allowed."""
        self._matcher.consume_token(token)


def check_grammar(grammar: str) -> None:
    """Raise ValueError for a grammar that cannot be followed, such as that of a JSON schema with
    a key that the library does not honour."""
    from llguidance import LLMatcher

    problem = LLMatcher.validate_grammar(LLMatcher.grammar_from_lark(grammar), None)
    if problem:
        raise ValueError(f"this schema cannot be followed: {_first_line(problem)}")


def _first_line(problem: str) -> str:
    return problem.strip().splitlines()[0]


_WINDOW_TOKENS = 16
"""Tokens decoded beyond the longest stop text when looking for one (a token may hold a part of a
character only)."""


def decode(tokenizer: Any, tokens: Sequence[int], *, special: bool) -> str:
    """The text of tokens, with or without special ones."""
    text: str = tokenizer.decode(
        list(tokens), skip_special_tokens=not special, clean_up_tokenization_spaces=False
    )
    return text


def stop_test(tokenizer: Any, stops: Sequence[str]) -> Callable[[list[int]], bool]:
    """Whether the last of some tokens has completed a stop text."""
    window = max(len(stop.encode()) for stop in stops) + _WINDOW_TOKENS

    def finished(tokens: list[int]) -> bool:
        tail = decode(tokenizer, tokens[-window:], special=False)
        return any(stop in tail for stop in stops)

    return finished


def before_stops(text: str, stops: Sequence[str]) -> tuple[str, bool]:
    """The text up to the first stop text in it, and whether there is one."""
    cuts = [at for stop in stops if (at := text.find(stop)) >= 0]
    return (text[: min(cuts)], True) if cuts else (text, False)

"""Holds replies to grammars: which tokens may come next, by llguidance.

The library is in the software environment `structured` alone, so it is imported where it is needed.
Neighbours: `engine.py` (asks before each token), `openai_api/grammar.py` (writes grammars).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy
import torch
from torch import Tensor


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
                "to hold replies to a form takes llguidance, which is in the software environment "
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
            raise GuideError(f"the reply cannot be held to what was asked for: {why}")
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

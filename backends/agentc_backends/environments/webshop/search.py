"""Ranks texts by BM25 as Lucene does with Anserini's settings (k1 0.9, b 0.4), to the last place.

Terms are those of `words.py`. Lengths are rounded as Lucene stores them, in one byte; scores are
worked out in single precision, as there, so that the same texts tie; ties go by the texts' keys.
"""

from __future__ import annotations

import math
import struct
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest

from agentc_backends.environments.webshop.words import tokens

_EXACT_LENGTHS = 24
"""Lengths below this are stored as they are."""
_FEW = 20_000
"""With fewer postings than this left to read, no text is worth ruling out."""
_ROUNDING = 1 - 1e-6


def _single(value: float) -> float:
    """The nearest number of single precision."""
    rounded: float = struct.unpack("f", struct.pack("f", value))[0]
    return rounded


K1, B = _single(0.9), _single(0.4)


class SearchIndex:
    """An index of texts; results are their numbers. `keys` decide between equal scores, texts'
    places where there are none."""

    def __init__(self, texts: Iterable[str], keys: Sequence[str] | None = None) -> None:
        # By term: numbers of texts, and how often each has it. Arrays, for a million texts have a
        # hundred million of these.
        self._numbers: dict[str, array[int]] = {}
        self._counts: dict[str, array[int]] = {}
        self._lengths = array("I")
        total = 0
        for number, text in enumerate(texts):
            counts = Counter(tokens(text))
            length = sum(counts.values())
            total += length
            self._lengths.append(stored_length(length))
            for token, count in counts.items():
                if token not in self._numbers:
                    self._numbers[token], self._counts[token] = array("I"), array("H")
                self._numbers[token].append(number)
                self._counts[token].append(min(count, 0xFFFF))
        self._mean = _single(total / len(self._lengths)) if self._lengths else 1.0
        self._scores: dict[str, array[float]] = {}
        order = sorted(range(len(keys)), key=keys.__getitem__) if keys else range(len(self))
        self._rank = array("I", bytes(4 * len(self)))
        for rank, number in enumerate(order):
            self._rank[number] = rank

    def search(self, query: str, limit: int) -> list[int]:
        """At most `limit` texts that share a term with the query, best first."""
        found = [(self._numbers[token], self._scored(token, times))
                 for token, times in Counter(tokens(query)).items()
                 if token in self._numbers]  # fmt: skip
        # The terms that tell most come first, so that what follows can rule texts out.
        found.sort(key=lambda postings: len(postings[0]))
        most = [max(scores) for _, scores in found]
        scores: dict[int, float] = {}
        for place, (numbers, of) in enumerate(found):
            rest = sum(len(each) for each, _ in found[place:])
            # Can a text without any term so far still come among the best?
            worth_asking = rest > _FEW and len(scores) >= limit
            if worth_asking and sum(most[place:]) < _bar(scores, limit):
                self._finish(scores, found[place:], most[place:], limit)
                break
            _add(scores, numbers, of)
        bar = _bar(scores, limit)
        best = [(-_single(score), self._rank[number], number)
                for number, score in scores.items() if score >= bar]  # fmt: skip
        return [number for _, _, number in sorted(best)[:limit]]

    def _finish(
        self,
        scores: dict[int, float],
        found: Sequence[tuple[array[int], array[float]]],
        most: Sequence[float],
        limit: int,
    ) -> None:
        """Adds the last terms to those texts only that can still come among the best."""
        for place, (numbers, of) in enumerate(found):
            bar = _bar(scores, limit) - sum(most[place:])
            for number in [number for number, score in scores.items() if score < bar]:
                del scores[number]
            for number in scores:
                at = bisect_left(numbers, number)
                if at < len(numbers) and numbers[at] == number:
                    scores[number] += of[at]

    def _scored(self, token: str, times: int) -> array[float]:
        """What a term adds to the score of each text that has it; kept for terms asked for once."""
        if times == 1 and token in self._scores:
            return self._scores[token]
        size, having = len(self), len(self._numbers[token])
        rarity = _single(math.log(1 + (size - having + 0.5) / (having + 0.5)))
        weight = _single(times * rarity)
        table: dict[tuple[int, int], float] = {}
        scored = array("f")
        lengths = self._lengths
        for number, count in zip(self._numbers[token], self._counts[token], strict=True):
            key = (count, lengths[number])
            if key not in table:
                table[key] = self._score(weight, *key)
            scored.append(table[key])
        if times == 1:
            self._scores[token] = scored
        return scored

    def _score(self, weight: float, count: int, length: int) -> float:
        share = _single(_single(B * length) / self._mean)
        inverse = _single(1 / _single(K1 * _single(_single(1 - B) + share)))
        return _single(weight - _single(weight / _single(1 + _single(count * inverse))))

    def __len__(self) -> int:
        return len(self._lengths)


def _bar(scores: Mapping[int, float], limit: int) -> float:
    """Whoever is below is not among the best, however scores are rounded."""
    best = nlargest(limit, scores.values())
    return best[-1] * _ROUNDING if best else 0.0


def _add(scores: dict[int, float], numbers: array[int], of: array[float]) -> None:
    get = scores.get
    for number, score in zip(numbers, of, strict=True):
        scores[number] = get(number, 0.0) + score


def stored_length(length: int) -> int:
    """A document's length after Lucene's rounding: exact up to 39, then four significant bits of
    what is above 24."""
    if length < _EXACT_LENGTHS:
        return length
    rest = length - _EXACT_LENGTHS
    shift = max(0, rest.bit_length() - 4)
    return _EXACT_LENGTHS + (rest >> shift << shift)

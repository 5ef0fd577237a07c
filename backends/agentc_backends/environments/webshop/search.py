"""Ranks texts by BM25 as Lucene does with Anserini's settings (k1 0.9, b 0.4), to the last place,
over the terms of Lucene's English analyser.

Lengths are rounded as Lucene stores them, in one byte; scores are computed in single precision, as
there, so that the same texts tie; ties go by the texts' keys."""

from __future__ import annotations

import math
import re
import struct
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from heapq import nlargest
from itertools import pairwise

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


# Terms: words of UAX #29, with pictures (emoji, stars, ticks) as words; possessives cut off, 33
# stop words left out, Porter stems.

# Digits in circles, fractions, raised digits and marks of sound: letters for Python, no words.
_NO_LETTERS = (
    "\u00b2\u00b3\u00b9\u00bc-\u00be\u2070\u2074-\u2079\u2080-\u2089\u2150-\u215f\u2189"
    "\u2460-\u249b\u24ea-\u24ff\u2776-\u2793\uff9e\uff9f"
)
# Each of these is a word.
_IDEOGRAPHS = (
    "\u2e80-\u2fdf\u3005\u3007\u3021-\u3029\u3038-\u303b\u3041-\u3096\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff"
)
_LETTER = rf"[^\W\d_{_NO_LETTERS}{_IDEOGRAPHS}]"
_EXTENDING = "\u00ad\u0300-\u036f\u200c-\u200f\u2060\u20d0-\u20ff\ufe00-\ufe0f\ufeff\uff9e\uff9f"
_BETWEEN_BOTH = ".'\u2018\u2019\u2024\ufe52\uff07\uff0e"
_BETWEEN_LETTERS = _BETWEEN_BOTH + ":\u00b7\u0387\u05f4\u2027\ufe13\ufe55\uff1a"
_BETWEEN_DIGITS = _BETWEEN_BOTH + ",;\u037e\u0589\u2044\ufe10\ufe14\ufe50\ufe54\uff0c\uff1b"
# Unicode's property Extended_Pictographic.
_PICTURES = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u2199\u21a9\u21aa\u231a\u231b\u2328\u2388\u23cf"
    "\u23e9-\u23f3\u23f8-\u23fa\u24c2\u25aa\u25ab\u25b6\u25c0\u25fb-\u25fe\u2600-\u2605"
    "\u2607-\u2612\u2614-\u2685\u2690-\u2705\u2708-\u2712\u2714\u2716\u271d\u2721\u2728\u2733"
    "\u2734\u2744\u2747\u274c\u274e\u2753-\u2755\u2757\u2763-\u2767\u2795-\u2797\u27a1\u27b0"
    "\u27bf\u2934\u2935\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55\u3030\u303d\u3297\u3299"
    "\U0001f000-\U0001f0ff\U0001f10d-\U0001f10f\U0001f12f\U0001f16c-\U0001f171\U0001f17e"
    "\U0001f17f\U0001f18e\U0001f191-\U0001f19a\U0001f1ad-\U0001f1e5\U0001f201-\U0001f20f"
    "\U0001f21a\U0001f22f\U0001f232-\U0001f23a\U0001f23c-\U0001f23f\U0001f249-\U0001f3fa"
    "\U0001f400-\U0001f53d\U0001f546-\U0001f64f\U0001f680-\U0001f6ff\U0001f774-\U0001f77f"
    "\U0001f7d5-\U0001f7ff\U0001f80c-\U0001f80f\U0001f848-\U0001f84f\U0001f85a-\U0001f85f"
    "\U0001f888-\U0001f88f\U0001f8ae-\U0001f8ff\U0001f90c-\U0001f93a\U0001f93c-\U0001f945"
    "\U0001f947-\U0001faff"
)
_PICTURE = rf"[{_PICTURES}][{_EXTENDING}\U0001f3fb-\U0001f3ff]*"
_FLAG = "[\U0001f1e6-\U0001f1ff]{2}"
_TOKEN = re.compile(
    rf"_*(?:{_LETTER}|\d)"
    rf"(?:{_LETTER}|[\d_{_EXTENDING}]"
    rf"|(?<={_LETTER})[{_BETWEEN_LETTERS}](?={_LETTER})"
    rf"|(?<=\d)[{_BETWEEN_DIGITS}](?=\d))*"
    rf"|[{_IDEOGRAPHS}]|{_PICTURE}(?:(?<=\u200d){_PICTURE})*|{_FLAG}"
)
_STOP_TEXT = (
    "a an and are as at be but by for if in into is it no not of on or such that the their then "
    "there these they this to was will with"
)
_STOP_WORDS = frozenset(_STOP_TEXT.split())
_POSSESSIVES = tuple(quote + s for quote in ("'", "\u2019", "\uff07") for s in "sS")


def tokens(text: str) -> list[str]:
    """The terms of a text or query."""
    return [term for term in map(_term, _TOKEN.findall(text)) if term]


@lru_cache(maxsize=1 << 17)
def _term(word: str) -> str:
    """Empty where the word does not count."""
    if word.endswith(_POSSESSIVES):
        word = word[:-2]
    word = word.lower()
    return "" if word in _STOP_WORDS else stem(word)


# Porter's stemmer as Lucene has it: M. F. Porter, "An algorithm for suffix stripping" (1980), and
# the departures that its author lists (`bli`, `logi`).

_STEP_2 = (
    ("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"),
    ("bli", "ble"), ("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"),
    ("ization", "ize"), ("ation", "ate"), ("ator", "ate"), ("alism", "al"), ("iveness", "ive"),
    ("fulness", "ful"), ("ousness", "ous"), ("aliti", "al"), ("iviti", "ive"), ("biliti", "ble"),
    ("logi", "log"),
)  # fmt: skip
_STEP_3 = (
    ("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""),
    ("ness", ""),
)  # fmt: skip
_STEP_4 = (
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou",
    "ism", "ate", "iti", "ous", "ive", "ize",
)  # fmt: skip


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """The stem of a word in lower case; words of one or two letters stay."""
    if len(word) < 3:
        return word
    word = _plural(word)
    word = _past(word)
    if word.endswith("y") and _has_vowel(word[:-1]):
        word = word[:-1] + "i"
    word = _replaced(word, _STEP_2)
    word = _replaced(word, _STEP_3)
    word = _without_ending(word)
    if word.endswith("e"):
        body = word[:-1]
        if _measure(body) > 1 or (_measure(body) == 1 and not _is_short(body)):
            word = body
    if word.endswith("ll") and _measure(word) > 1:
        word = word[:-1]
    return word


def _plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _past(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for ending in ("ed", "ing"):
        if word.endswith(ending):
            body = word[: -len(ending)]
            return _restored_ending(body) if _has_vowel(body) else word
    return word


def _restored_ending(body: str) -> str:
    if body.endswith(("at", "bl", "iz")):
        return body + "e"
    if _doubles(body):
        return body if body[-1] in "lsz" else body[:-1]
    return body + "e" if _measure(body) == 1 and _is_short(body) else body


def _replaced(word: str, endings: tuple[tuple[str, str], ...]) -> str:
    """The longest ending that fits is taken, and replaced after a stem of measure above 0."""
    for ending, instead in sorted(endings, key=lambda pair: -len(pair[0])):
        if word.endswith(ending):
            body = word[: -len(ending)]
            return body + instead if _measure(body) > 0 else word
    return word


def _without_ending(word: str) -> str:
    for ending in sorted(_STEP_4, key=len, reverse=True):
        if word.endswith(ending):
            body = word[: -len(ending)]
            fits = _measure(body) > 1 and (ending != "ion" or body.endswith(("s", "t")))
            return body if fits else word
    return word


def _is_consonant(word: str, index: int) -> bool:
    if word[index] in "aeiou":
        return False
    return not (word[index] == "y" and index > 0 and _is_consonant(word, index - 1))


def _measure(body: str) -> int:
    """How many times vowels are followed by consonants."""
    kinds = [_is_consonant(body, index) for index in range(len(body))]
    return sum(not first and second for first, second in pairwise(kinds))


def _has_vowel(body: str) -> bool:
    return any(not _is_consonant(body, index) for index in range(len(body)))


def _doubles(body: str) -> bool:
    return len(body) > 1 and body[-1] == body[-2] and _is_consonant(body, len(body) - 1)


def _is_short(body: str) -> bool:
    """Ends with consonant, vowel, consonant, the last not w, x or y."""
    last = len(body) - 1
    return (
        last >= 2
        and _is_consonant(body, last)
        and not _is_consonant(body, last - 1)
        and _is_consonant(body, last - 2)
        and body[last] not in "wxy"
    )

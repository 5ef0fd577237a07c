"""Porter's stemmer as Lucene has it: with Porter's own departures (`bli`, `logi`).

M. F. Porter, "An algorithm for suffix stripping" (1980), and the departures that its author lists.
Used by `search.py`.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

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
            return _mended(body) if _has_vowel(body) else word
    return word


def _mended(body: str) -> str:
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

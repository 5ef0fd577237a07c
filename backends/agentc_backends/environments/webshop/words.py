"""Cuts texts into the terms that Lucene's English analyser finds, for `search.py`.

Words of UAX #29, with pictures (emoji, stars, ticks) as words of their own; possessives cut off,
33 stop words left out, Porter stems.
"""

from __future__ import annotations

import re
from functools import lru_cache

from agentc_backends.environments.webshop.stemmer import stem

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

"""Whether the values of code follow from its text, so that a verdict on it holds for equal code.

A judgement by words, and a narrow one: what it takes for repeatable is, what it does not may be. It
guards statistics and nothing else: code that outwits it has the verdict that it had before.
"""

from __future__ import annotations

import re

_WORD = re.compile(r"\w+")
_IMPORT = re.compile(r"\s*(?:import (\w+)(?: as \w+)?|from (\w+) import [\w, *()]+)\s*")
# fmt: off
_PURE = frozenset({
    "bisect", "cmath", "collections", "copy", "dataclasses", "datetime", "decimal", "enum",
    "fractions", "functools", "heapq", "itertools", "json", "math", "numbers", "operator", "re",
    "statistics", "string", "textwrap", "typing",
})
"""Modules of which only clocks (`_VARYING`) give another value in another process."""
_VARYING = frozenset({
    "id", "object", "hash", "getattr", "eval", "exec", "compile", "globals", "locals", "vars",
    "open", "input", "now", "today", "utcnow", "random",
})
# fmt: on
"""Addresses, clocks, chance, and ways to names that are not in the text."""


def repeatable(code: str) -> bool:
    """False where a value may come from anything but the text: chance, time, an address, a module
    that is not known here."""
    words = set(_WORD.findall(code))
    if words & _VARYING or "__" in code:
        return False
    if "import" not in words:
        return True
    asked = [line for line in code.splitlines() if "import" in _WORD.findall(line)]
    found = [_IMPORT.fullmatch(line) for line in asked]
    return all(each is not None and (each[1] or each[2]) in _PURE for each in found)

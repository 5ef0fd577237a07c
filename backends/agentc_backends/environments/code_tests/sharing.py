"""Which references may run in one process, one after the other, each as if it were there alone.

By words, and stricter than by syntax: a name that code can say stands in its text as a word, as the
text is ASCII; words of comments and texts count as well. Without imports, names with `__`, frames,
and builtins that reach further, nothing that code can touch outlives its namespace: what is left
are its functions, values, and builtin types, which cannot be changed; and its values follow from
its text. Without `try` nobody hides that memory or depth ran out: whoever sees that
(`calls.make_together`) has each reference run alone, and so has whatever is doubtful.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Sequence

_WORD = re.compile(r"[^\W\d]\w*")
# fmt: off
_HARMLESS = frozenset({
    "ArithmeticError", "AssertionError", "AttributeError", "Ellipsis", "Exception", "False",
    "IndexError", "KeyError", "LookupError", "NameError", "None", "NotImplemented",
    "NotImplementedError", "OverflowError", "RuntimeError", "StopIteration", "True", "TypeError",
    "ValueError", "ZeroDivisionError", "abs", "all", "any", "ascii", "bin", "bool", "bytearray",
    "bytes", "callable", "chr", "complex", "dict", "divmod", "enumerate", "filter", "float",
    "frozenset", "hex", "int", "isinstance", "issubclass", "iter", "len", "list", "map", "max",
    "min", "next", "oct", "ord", "pow", "range", "repr", "reversed", "round", "set",
    "slice", "sorted", "str", "sum", "tuple", "zip",
})
"""Builtins that make values of values. Not `type`, which makes classes with methods of any name."""
_OTHERS = frozenset({
    "async", "await", "class", "format", "format_map", "global", "import", "nonlocal", "try",
    "yield",
})
"""Statements that reach further, and what reads attributes by a text."""
_REACHING = _OTHERS | (frozenset(dir(builtins)) - _HARMLESS)
_FRAMES = ("gi_", "cr_", "ag_", "f_", "tb_", "co_")
"""How attributes begin that lead from a generator or an error to frames, and so to all names."""
# fmt: on


def leaves_nothing(code: str, calls: Sequence[str]) -> bool:
    """Whether the code and these calls of it cannot change what code after it finds, and their
    values follow from their text."""
    text = "\n".join([code, *calls])
    if not text.isascii() or "__" in text:
        return False
    words = set(_WORD.findall(text))
    return _REACHING.isdisjoint(words) and not any(word.startswith(_FRAMES) for word in words)

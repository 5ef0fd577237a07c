"""Which references may run in one process, one after the other, each as if it were there alone.

Without imports, names with `__`, frames, and builtins that reach further, nothing that code can
change outlives its namespace, and its values follow from its text. Without `try` nobody hides that
memory or depth ran out: whoever sees that (`calls.make_together`) has each reference run alone.
What is doubtful runs alone from the start (`../colbench/references.py`).
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator, Sequence

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
"""Words of statements that reach further, and of what reads attributes by a text."""
_NODES = frozenset({
    "AsyncFor", "AsyncFunctionDef", "AsyncWith", "Await", "ClassDef", "Global", "Import",
    "ImportFrom", "Match", "Nonlocal", "Try", "TryStar", "With", "Yield", "YieldFrom",
})
"""The same statements, and those that are seldom, as syntax has them."""
_REACHING = _OTHERS | (frozenset(dir(builtins)) - _HARMLESS)
_FRAMES = ("gi_", "cr_", "ag_", "f_", "tb_", "co_")
"""How attributes begin that lead from a generator or an error to frames, and so to all names."""
# fmt: on


def leaves_nothing(code: str, calls: Sequence[str]) -> bool:
    """Whether the code and these calls of it cannot change what code after it finds, and their
    values follow from their text."""
    text = "\n".join([code, *calls])
    if "__" in text:
        return False
    # Quicker, and stricter: of a text in ASCII each name is a word of it, in whatever place.
    if text.isascii() and _harmless(set(_WORD.findall(text))):
        return True
    try:
        said = {*_said(ast.parse(code))}
        for call in calls:
            said.update(_said(ast.parse(call, mode="eval")))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return _NODES.isdisjoint(said) and _harmless(said)


def _harmless(names: set[str]) -> bool:
    return _REACHING.isdisjoint(names) and not any(name.startswith(_FRAMES) for name in names)


def _said(tree: ast.AST) -> Iterator[str]:
    """Kinds of nodes, and all names, as Python reads them: some letters stand for others."""
    nodes = [tree]
    while nodes:
        node = nodes.pop()
        yield type(node).__name__
        for part in vars(node).values():
            if isinstance(part, ast.AST):
                nodes.append(part)
            elif isinstance(part, list):
                nodes.extend(each for each in part if isinstance(each, ast.AST))
            elif isinstance(part, str) and not isinstance(node, ast.Constant):
                yield part

"""A task's tests: calls, and the values that its reference gives. Verdicts on an answer, and what
the text of a reply decides.

The reference runs once for each task, in a box that no answer sees, and its values never enter a
box in which an answer runs: an answer can forge what it says, and does not know what to say."""

from __future__ import annotations

import ast
import builtins
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from agentc_backends.environments.code_tests.calls import (
    CallLimits,
    CallResult,
    Failure,
    Namespace,
    Place,
    compile_and_make,
    make_calls,
    make_together,
)
from agentc_backends.environments.code_tests.values import equal, equals_nothing

_BLOCK = re.compile(r"```([^\n`]*)(?:\n|\Z)(.*?)(?:```|\Z)", re.DOTALL)
_PYTHON = re.compile(r"\{?\.?(?:python|py)[0-9.]*(?![^\s,;:{}])", re.IGNORECASE)

# fmt: off
_FORBIDDEN = (
    "import os", "from os", "import sys", "from sys", "sudo", "transformers", "exit(", "quit(",
    "argparse",
)
# fmt: on
"""What the released evaluator looks for in the text of an answer, comments included."""


def forbidden(reply: str, namespace: str) -> bool:
    """Whether a reply scores 0 unseen, for a word in it."""
    return namespace == "published" and any(word in reply for word in _FORBIDDEN)


def code_of(reply: str, namespace: str) -> str:
    """By the rules that belong to a namespace."""
    return _published(reply) if namespace == "published" else _fresh(reply)


def _fresh(reply: str) -> str:
    """The first block of Python, else the first of no language; one that nobody closed goes to the
    end. What follows the language's name, such as a title, is left alone."""
    blocks = [(found[1].strip(), found[2]) for found in _BLOCK.finditer(reply)]
    named = [code for language, code in blocks if _PYTHON.match(language)]
    others = [code for language, code in blocks if not language]
    return textwrap.dedent(next(iter(named + others), reply)).strip()


def _published(reply: str) -> str:
    """As the released evaluator finds it: what follows "```python" up to the next fence, be it more
    of the language's name; of other fences what follows the first, the language's name too."""
    code = reply
    if "```python" in code:
        code = code.split("```python")[1].split("```")[0]
    if "```" in code:
        code = code.split("```")[1]
    return code


# `repeatable` judges by words, and narrowly: code that it accepts is repeatable, code that it
# refuses may be. It guards statistics only: code that outwits it has the verdict that it had
# before.

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


# Without imports, names with `__`, frames, and builtins that reach further, nothing that code can
# change outlives its namespace, and its values follow from its text. Without `try` no code hides
# that memory or depth ran out: `calls.make_together` then runs each reference in its own process.

_NAME = re.compile(r"[^\W\d]\w*")
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
_REFUSED = frozenset({
    "async", "await", "class", "format", "format_map", "global", "import", "nonlocal", "try",
    "yield",
})
"""Words of statements that reach further, and of what reads attributes by a text."""
_NODES = frozenset({
    "AsyncFor", "AsyncFunctionDef", "AsyncWith", "Await", "ClassDef", "Global", "Import",
    "ImportFrom", "Match", "Nonlocal", "Try", "TryStar", "With", "Yield", "YieldFrom",
})
"""The same statements, and those that are seldom, as syntax has them."""
_REACHING = _REFUSED | (frozenset(dir(builtins)) - _HARMLESS)
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
    if text.isascii() and _harmless(set(_NAME.findall(text))):
        return True
    try:
        names = {*_names_of(ast.parse(code))}
        for call in calls:
            names.update(_names_of(ast.parse(call, mode="eval")))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return _NODES.isdisjoint(names) and _harmless(names)


def _harmless(names: set[str]) -> bool:
    return _REACHING.isdisjoint(names) and not any(name.startswith(_FRAMES) for name in names)


def _names_of(tree: ast.AST) -> Iterator[str]:
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


EQUALS_NOTHING = (
    "the reference gives None",
    "the reference gives a value that equals nothing",
)
"""Why no answer can pass a test whose reference does run."""

CallVerdict: TypeAlias = Literal["pass", "fail", "no_answer", "forbidden"] | Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSuite:
    """Made by `suite_of`. `unusable` says of calls, by number, why no answer can pass them. `code`
    is that of the calls, for boxes alone: so that no answer's has to compile them. `source` is the
    reference's own, which enters no box but its own."""

    calls: tuple[str, ...]
    expected: tuple[Any, ...]
    unusable: dict[int, str]
    limits: CallLimits
    namespace: Namespace
    code: bytes = b""
    source: str = ""


def suite_of(
    box: Place,
    reference: str,
    calls: Sequence[str],
    limits: CallLimits | None = None,
    namespace: Namespace = "fresh",
) -> CallSuite:
    """Calls with the values that the reference gives. Raises BoxError."""
    limits = limits or CallLimits()
    source = code_of(reference, namespace)
    results, code = compile_and_make(box, source, calls, limits, namespace)
    return _suite(source, calls, results, limits, namespace, code)


def suites_of(
    box: Place,
    asked: Sequence[tuple[str, Sequence[str]]],
    limits: CallLimits | None = None,
    namespace: Namespace = "fresh",
) -> tuple[CallSuite, ...] | None:
    """The same for several references with their calls, in one process: those that leave nothing
    behind (`leaves_nothing`). None where each is to be made alone. Raises BoxError."""
    limits = limits or CallLimits()
    sources = [(code_of(reference, namespace), calls) for reference, calls in asked]
    made = make_together(box, sources, limits, namespace)
    if made is None:
        return None
    return tuple(
        _suite(source, calls, results, limits, namespace, code)
        for (source, calls), (results, code) in zip(sources, made, strict=True)
    )


def verdicts(box: Place, suite: CallSuite, reply: str | None) -> tuple[CallVerdict, ...]:
    """What came of each test; of all of them `no_answer` where there is no reply, and `forbidden`
    where the namespace forbids a word of it. Raises BoxError."""
    if reply is None:
        return tuple("no_answer" for _ in suite.calls)
    if forbidden(reply, suite.namespace):
        return tuple("forbidden" for _ in suite.calls)
    source = code_of(reply, suite.namespace)
    results = make_calls(box, source, suite.calls, suite.limits, suite.namespace, suite.code)
    return tuple(_verdict(suite, number, result) for number, result in enumerate(results))


def score(judged: Sequence[CallVerdict]) -> float:
    """The share that passed."""
    return judged.count("pass") / len(judged) if judged else 0.0


def _suite(
    source: str,
    calls: Sequence[str],
    results: Sequence[CallResult],
    limits: CallLimits,
    namespace: Namespace,
    code: bytes,
) -> CallSuite:
    said = {number: _unusable(result) for number, result in enumerate(results)}
    return CallSuite(
        calls=tuple(calls),
        expected=tuple(result.value for result in results),
        unusable={number: reason for number, reason in said.items() if reason},
        limits=limits,
        namespace=namespace,
        code=code,
        source=source,
    )


def _verdict(suite: CallSuite, number: int, result: CallResult) -> CallVerdict:
    if result.failure is not None:
        return result.failure
    if number in suite.unusable:
        return "fail"
    return "pass" if equal(result.value, suite.expected[number]) else "fail"


def _unusable(result: CallResult) -> str:
    if result.failure is not None:
        return f"the reference ends in {result.failure} {result.detail}".rstrip()
    if result.value is None:
        return EQUALS_NOTHING[0]
    if equals_nothing(result.value):
        return EQUALS_NOTHING[1]
    return ""

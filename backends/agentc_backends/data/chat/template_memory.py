"""Bounds what a chat template may hold in memory: every text and list that it makes is charged.

One product of a text (`'x' * 2000000000`), one `indent` or one loop takes gigabytes before a limit
of time is noticed. So templates are compiled in an environment that counts what operators, filters,
methods and outputs make, and refuses sizes before they are made. Used by bounded.py.
"""

from __future__ import annotations

import functools
import re
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.sandbox import ImmutableSandboxedEnvironment

from agentc_backends.data.chat.formats import FormatError

LIMIT = 64_000_000
"""Characters and list items that one rendering may make, all together: 256 MB at most."""
_LONGEST_NUMBER = 1 << 16
"""Bits of a number."""
_COST = 8
"""Of a piece of output besides its characters: a place in a list."""
_WIDTH = re.compile(r"\d{7,}|\*")
_LIBRARY = "transformers.utils.chat_template_utils"
_CLASS = "ImmutableSandboxedEnvironment"


class TemplateMemoryError(FormatError):
    """A template would hold too much."""

    def __init__(self) -> None:
        super().__init__(
            "the model's chat template would hold more than "
            f"{LIMIT:,} characters for one conversation; choose a built-in chat_format on the "
            "model stage, or correct the template"
        )


class _Spent(threading.local):
    amount = 0


_SPENT = _Spent()


def begin() -> None:
    """A rendering begins in this thread. Templates that transformers compiles are restrained from
    the first one on."""
    _SPENT.amount = 0
    library: Any = sys.modules.get(_LIBRARY)
    found = getattr(library, _CLASS, None)
    if found is not None and found is not RestrainedEnvironment:
        setattr(library, _CLASS, RestrainedEnvironment)
        for name in ("_compile_jinja_template", "_cached_compile_jinja_template"):
            clear = getattr(getattr(library, name, None), "cache_clear", None)
            if clear is not None:
                clear()


def _charge(amount: int) -> None:
    _SPENT.amount += amount
    if _SPENT.amount > LIMIT:
        raise TemplateMemoryError


def _charged(value: Any) -> Any:
    if isinstance(value, (str, list, tuple, dict, set)):
        _charge(len(value))
    return value


class _Buffer(list[Any]):
    """Pieces of output."""

    def append(self, piece: Any) -> None:
        _charge(len(piece) + _COST)
        super().append(piece)

    def extend(self, pieces: Iterable[Any]) -> None:
        for piece in pieces:
            self.append(piece)


class _Generator(CodeGenerator):
    """Writes template code whose concatenations and buffers are charged."""

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:  # noqa: N802
        self.write("environment.concatenated((")
        for part in node.nodes:
            self.visit(part, frame)
            self.write(", ")
        self.write("))")

    def buffer(self, frame: Frame) -> None:
        frame.buffer = self.temporary_identifier()
        self.writeline(f"{frame.buffer} = environment.buffer()")


class _Filters(dict[str, Callable[..., Any]]):
    """Filters, each of which checks its arguments and is charged for its result."""

    def __setitem__(self, name: str, value: Callable[..., Any]) -> None:
        super().__setitem__(name, _restrained(name, value))


def _restrained(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def restrained(*words: Any, **named: Any) -> Any:
        # Some get the environment or the context first.
        values = words[1:] if hasattr(function, "jinja_pass_arg") else words
        _check(name, values[0] if values else None, values[1:], named)
        return _charged(function(*words, **named))

    return restrained


class RestrainedEnvironment(ImmutableSandboxedEnvironment):
    """The environment of transformers, with charges."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})
    code_generator_class = _Generator
    buffer = staticmethod(_Buffer)

    def __init__(self, *words: Any, **named: Any) -> None:
        super().__init__(*words, **named)
        filters = _Filters()
        for name, function in self.filters.items():
            filters[name] = function
        self.filters = filters

    @staticmethod
    def concat(pieces: Iterable[str]) -> str:
        """Of a whole output, piece by piece, and of buffers, which were charged."""
        if not isinstance(pieces, list):
            buffer = _Buffer()
            buffer.extend(pieces)
            pieces = buffer
        return "".join(pieces)

    @staticmethod
    def concatenated(parts: tuple[Any, ...]) -> str:
        """`a ~ b`."""
        texts = [str(part) for part in parts]
        _charge(sum(map(len, texts)))
        return "".join(texts)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "*":
            _charge(_product(left, right))
        elif operator == "**" and isinstance(left, int) and isinstance(right, int):
            _number(left.bit_length() * max(right, 0))
        elif operator == "+" and hasattr(left, "__len__") and hasattr(right, "__len__"):
            _charge(len(left) + len(right))
        elif operator == "%" and isinstance(left, str):
            _formatted(left)
            return _charged(super().call_binop(context, operator, left, right))
        return super().call_binop(context, operator, left, right)

    def call(__self, __context: Any, __obj: Any, *words: Any, **named: Any) -> Any:  # noqa: N805
        owner = getattr(__obj, "__self__", None)
        if isinstance(owner, (str, bytes, list, tuple, int)):
            _check(getattr(__obj, "__name__", ""), owner, words, named)
        elif getattr(__obj, "__wrapped__", None) is not None:  # `format`, as the sandbox wraps it
            text = getattr(__obj.__wrapped__, "__self__", "")
            _check("format", text, words, named)
        return _charged(super().call(__context, __obj, *words, **named))


def _product(left: Any, right: Any) -> int:
    for sequence, times in ((left, right), (right, left)):
        if hasattr(sequence, "__len__") and isinstance(times, int):
            return len(sequence) * max(times, 0)
    if isinstance(left, int) and isinstance(right, int):
        _number(left.bit_length() + right.bit_length())
    return 0


def _number(bits: int) -> None:
    if bits > _LONGEST_NUMBER:
        raise TemplateMemoryError


def _formatted(text: Any) -> None:
    """A width within a format."""
    if isinstance(text, str) and _WIDTH.search(text):
        raise TemplateMemoryError


def _check(name: str, value: Any, words: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Before a filter or a method: that no argument asks for too much."""
    given = [*words, *named.values()]
    if any(isinstance(each, int) and abs(each) > LIMIT for each in given):
        raise TemplateMemoryError
    text = value if isinstance(value, str) else ""
    if name in ("format", "format_map"):
        _formatted(text)
        if any(isinstance(each, int) and abs(each) > _LONGEST_NUMBER for each in given) and (
            re.search(r"\{[^{}]*:[^{}]*\{", text)
        ):
            raise TemplateMemoryError
    elif name == "replace" and len(given) >= 2:
        old, new = str(given[0]), str(given[1])
        _charge((text.count(old) if old else len(text) + 1) * len(new))
    elif name == "join":
        joiner = value if isinstance(value, str) and words and not named else None
        items = words[0] if joiner is not None else value
        between = joiner if joiner is not None else str(given[0]) if given else ""
        if hasattr(items, "__len__"):
            _charge(len(items) * len(between))
            _charge(sum(len(each) for each in items if isinstance(each, str)))
    elif name == "indent" and given:
        width = given[0] if isinstance(given[0], int) else len(str(given[0]))
        _charge((text.count("\n") + 1) * max(width, 0))
    elif name == "tojson":
        indent = named.get("indent", words[1] if len(words) > 1 else None)
        if isinstance(indent, int) and indent > 1000:
            raise TemplateMemoryError
    elif name in ("center", "ljust", "rjust", "zfill", "expandtabs", "to_bytes"):
        sizes = [each for each in given if isinstance(each, int)]
        _charge(max(sizes, default=0) * (text.count("\t") + 1 if name == "expandtabs" else 1))

"""Renders a model's own chat template within bounds: it is a program that came with the weights.

Jinja's sandbox protects the machine, not against endless loops or gigabytes of text. Memory: one
product of a text (`'x' * 2000000000`) takes gigabytes before a time limit is noticed, so templates
are compiled in an environment that counts what operators, filters, methods and outputs make, and
refuses sizes before they are made. Time: a thread watches the CPU time of each rendering, so that a
busy machine ends none; it raises an exception between two steps of the template. Date: always the
same one."""

from __future__ import annotations

import ctypes
import functools
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.sandbox import ImmutableSandboxedEnvironment

from agentc_backends.data.chat.formats import FormatError

MEMORY_LIMIT = 64_000_000
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
            f"{MEMORY_LIMIT:,} characters for one conversation; choose a built-in chat_format on "
            "the model stage, or correct the template"
        )


class _Spent(threading.local):
    amount = 0


_SPENT = _Spent()


def reset_charges() -> None:
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
    if _SPENT.amount > MEMORY_LIMIT:
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
    if any(isinstance(each, int) and abs(each) > MEMORY_LIMIT for each in given):
        raise TemplateMemoryError
    text = value if isinstance(value, str) else ""
    if name in ("format", "format_map"):
        _check_format(text, given)
    elif name == "replace" and len(given) >= 2:
        old, new = str(given[0]), str(given[1])
        _charge((text.count(old) if old else len(text) + 1) * len(new))
    elif name == "join":
        _charge_join(value, words, named)
    elif name == "indent" and given:
        _charge((text.count("\n") + 1) * max(_width_of(given[0]), 0))
    elif name == "tojson":
        indent = named.get("indent", words[1] if len(words) > 1 else None)
        if isinstance(indent, int) and indent > 1000:
            raise TemplateMemoryError
    elif name in ("center", "ljust", "rjust", "zfill", "expandtabs", "to_bytes"):
        sizes = [each for each in given if isinstance(each, int)]
        _charge(max(sizes, default=0) * (text.count("\t") + 1 if name == "expandtabs" else 1))


def _width_of(indent: Any) -> int:
    """An indent is a number of spaces, or a text."""
    return indent if isinstance(indent, int) else len(str(indent))


def _check_format(text: str, given: list[Any]) -> None:
    """A width may be written in the format, or be an argument of it."""
    _formatted(text)
    long = any(isinstance(each, int) and abs(each) > _LONGEST_NUMBER for each in given)
    if long and re.search(r"\{[^{}]*:[^{}]*\{", text):
        raise TemplateMemoryError


def _charge_join(value: Any, words: tuple[Any, ...], named: dict[str, Any]) -> None:
    """`", ".join(items)`, or the filter `items | join(", ")`."""
    if isinstance(value, str) and words and not named:
        items, between = words[0], value
    else:
        given = [*words, *named.values()]
        items, between = value, str(given[0]) if given else ""
    if hasattr(items, "__len__"):
        _charge(len(items) * len(between))
        _charge(sum(len(item) for item in items if isinstance(item, str)))


TIME_LIMIT_S = 5.0
"""Of CPU time. Templates take milliseconds for conversations of a hundred turns."""
TEXT_LIMIT = 16_000_000

_REMEDY = "choose a built-in chat_format on the model stage, or correct the template"


class TemplateTimeError(FormatError):
    """A template used up its time; raised by the watching thread in the one that renders."""

    def __init__(self) -> None:
        super().__init__(f"the model's chat template does not end (time limit); {_REMEDY}")


def render_bounded(render: Callable[[], str], limit_s: float | None = None) -> str:
    """The text that `render` gives in this thread. Raises FormatError where it takes more than
    `limit_s` (else LIMIT_S) of CPU time, writes more than LIMIT_CHARACTERS, or holds more than
    template_memory.LIMIT."""
    limit_s = TIME_LIMIT_S if limit_s is None else limit_s
    reset_charges()
    entry = _Entry(threading.get_ident(), limit_s, _clock_of(threading.get_ident()))
    try:
        _WATCH.add(entry)
        try:
            text = render()
        finally:
            _WATCH.remove(entry)
    except TemplateTimeError:
        raise FormatError(
            f"the model's chat template took more than {limit_s:g} s of CPU time for one "
            f"conversation; {_REMEDY}"
        ) from None
    if len(text) > TEXT_LIMIT:
        raise FormatError(
            f"the model's chat template wrote {len(text):,} characters for one conversation, more "
            f"than {TEXT_LIMIT:,}; {_REMEDY}"
        )
    return text


def _clock_of(thread: int) -> Callable[[], float]:
    """The CPU time of a thread, or the time of day where the system does not tell it."""
    number = getattr(time, "pthread_getcpuclockid", None)
    if number is None:
        return time.monotonic
    clock = number(thread)
    return lambda: time.clock_gettime(clock)


class _Entry:
    """A thread that renders."""

    __slots__ = ("clock", "ends", "struck", "thread", "wait")

    def __init__(self, thread: int, limit_s: float, clock: Callable[[], float]) -> None:
        self.thread = thread
        self.clock = clock
        self.ends = clock() + limit_s
        self.wait = limit_s / 10
        self.struck = False


@dataclass(slots=True)
class _Watch:
    """The thread that looks after all of them; it sleeps while there is none."""

    lock: threading.Lock
    """Of `changed`. Those that render take it by itself: the exception may reach them wherever
    Python code runs, within a condition's own `__enter__` too, and the lock would stay taken."""
    changed: threading.Condition
    entries: set[_Entry]
    thread: threading.Thread | None = None

    def add(self, entry: _Entry) -> None:
        with self.lock:
            self.entries.add(entry)
            if self.thread is None or not self.thread.is_alive():
                self.thread = threading.Thread(target=self._run, daemon=True, name="templates")
                self.thread.start()
            if len(self.entries) == 1:
                self.changed.notify()

    def remove(self, entry: _Entry) -> None:
        with self.lock:
            self.entries.discard(entry)
            if entry.struck:
                # It may have ended by itself with the exception still on its way.
                _raise_in(entry.thread, None)

    def _run(self) -> None:
        with self.changed:
            while True:
                if not self.entries:
                    self.changed.wait()
                    continue
                self.changed.wait(min(entry.wait for entry in self.entries))
                for entry in [each for each in self.entries if each.clock() > each.ends]:
                    self.entries.discard(entry)
                    entry.struck = True
                    _raise_in(entry.thread, TemplateTimeError)


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    given = None if error is None else ctypes.py_object(error)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), given)


def _watch() -> _Watch:
    lock = threading.Lock()
    return _Watch(lock, threading.Condition(lock), set())


_WATCH = _watch()


# Templates may request today's date (`strftime_now`, as those of Llama 3.2 and 3.3 do): a prompt
# would change overnight, and differ between training and serving.

TEMPLATE_DATE = datetime(2024, 7, 26)
"""What the templates of Llama 3.1 to 3.3 write themselves where there is no clock. Another date
would be another prompt: who changes it raises the versions of trainers and servers."""

_HARMLESS = re.compile(r"\bstrftime_now\s+is\s+(?:not\s+)?defined\b|\{#.*?#\}", re.DOTALL)
_CONSTANT = re.compile(
    r"\bstrftime_now\s*\(\s*(?:format\s*=\s*)?(?:\"([^\"\\]*)\"|'([^'\\]*)')\s*,?\s*\)"
)


def with_fixed_date(template: str) -> str:
    """The template with the date in the place of each question for it. Raises FormatError where
    the question is not a constant."""
    if "strftime_now" not in template:
        return template
    fixed = _CONSTANT.sub(lambda found: repr(_written(found[1] or found[2] or "")), template)
    if "strftime_now" in _HARMLESS.sub("", fixed):
        raise FormatError(
            "the model's chat template requests the date (strftime_now) in a form that is no "
            "constant; no fixed one can be put there, so that prompts would change with the day: "
            "choose a built-in chat_format on the model stage, or write a constant into the "
            "template"
        )
    return fixed


def _written(form: str) -> str:
    return TEMPLATE_DATE.strftime(form)

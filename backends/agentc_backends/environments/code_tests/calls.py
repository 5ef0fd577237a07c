"""Calls of functions that an answer defines, made in a box, with the result of each.

All calls share one process while they succeed. A call that ends the process or does not return
fails by itself: the next ones are made in a new process. Nothing is kept between two `make_calls`.
References without lasting effects may share a process too, answers never."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import ceil
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

from agentc.runtime.sandbox.boxes import CodeBox
from agentc.runtime.sandbox.nursery import BoxNursery
from agentc.runtime.sandbox.process import (
    BoxedLimits,
    BoxedProcess,
    BoxError,
    LateError,
    TooLongError,
)
from agentc_backends.environments.code_tests.values import MalformedValueError, read_value

Namespace: TypeAlias = Literal["fresh", "published"]
"""`fresh`: a module of its own for each call. `published`: as the released ColBench evaluator has
it, where functions do not see each other; for comparisons with its numbers."""

Failure: TypeAlias = Literal["error", "timeout", "memory", "crash"]

_TAG_BYTES = 2
_ALWAYS = 1 / 20
_SHARED = 1 / 2
"""Of a call's time, for one of several sources: whose calls come near the limit are done alone."""
_PLAIN_ERRORS = frozenset({
    "ArithmeticError", "AssertionError", "AttributeError", "Exception", "IndentationError",
    "IndexError", "KeyError", "LookupError", "NameError", "NotImplementedError", "OverflowError",
    "RuntimeError", "StopIteration", "SyntaxError", "TabError", "TypeError", "UnboundLocalError",
    "UnicodeError", "ValueError", "ZeroDivisionError",
})  # fmt: skip
"""What code raises for what it is given. How deep or large it may be is another matter."""


@dataclass(frozen=True, slots=True)
class CallLimits:
    """For each call: `seconds` of processor time, address space, and bytes of the value as it is
    sent. For all calls of an answer: `wall_seconds` for code that sleeps or waits; when they are
    used up, a twentieth of them for each call, which one that computes does not need."""

    seconds: float = 1.0
    wall_seconds: float = 10.0
    memory_mb: int = 512
    output_bytes: int = 65536


@dataclass(frozen=True, slots=True)
class CallResult:
    """`value` where `failure` is None. `detail` is a word for people: the exception's name."""

    value: Any = field(default=None, compare=False)
    failure: Failure | None = None
    detail: str = ""


Place: TypeAlias = CodeBox | BoxNursery
"""Where calls are made: in a box of their own, or in a child of a nursery that nobody else uses
meanwhile, made by `nursery_of`."""


def nursery_of(box: CodeBox, limits: CallLimits) -> BoxNursery:
    """A nursery for calls with that much memory. Raises BoxError."""
    return BoxNursery(box, _program(), limits.memory_mb)


def make_calls(
    box: Place,
    source: str,
    calls: Sequence[str],
    limits: CallLimits | None = None,
    namespace: Namespace = "fresh",
    code: bytes = b"",
) -> tuple[CallResult, ...]:
    """A result for each call. Raises BoxError where the box fails, never for what code does. `code`
    is what `compile_and_make` gave for the same calls: without it each process compiles them."""
    return _run_calls(box, _data(source, calls, namespace, code), limits or CallLimits())


def compile_and_make(
    box: Place,
    source: str,
    calls: Sequence[str],
    limits: CallLimits | None = None,
    namespace: Namespace = "fresh",
) -> tuple[tuple[CallResult, ...], bytes]:
    """The same, and the calls' code, as a box's interpreter writes it; empty where it is too long.
    It is the word of a process that runs `source`, and nothing but boxes may read it."""
    told: list[bytes] = []
    data = {**_data(source, calls, namespace, b""), "tells": True}
    results = _run_calls(box, data, limits or CallLimits(), told)
    return results, told[0] if told else b""


def make_together(
    box: Place,
    asked: Sequence[tuple[str, Sequence[str]]],
    limits: CallLimits | None = None,
    namespace: Namespace = "fresh",
) -> tuple[tuple[tuple[CallResult, ...], bytes], ...] | None:
    """What `compile_and_make` gives of each source with its calls, by one process that runs
    them one after the other: for sources that leave nothing behind (`suite.leaves_nothing`).
    None where anything but a value or an exception of theirs came of one: then each is to be
    made alone. Raises BoxError."""
    limits = limits or CallLimits()
    brief = replace(limits, seconds=limits.seconds * _SHARED)
    number = sum(len(calls) for _, calls in asked)
    parts = [
        {**_data(*each, namespace, b""), "tells": True, "first": 0, "bytes": limits.output_bytes}
        for each in asked
    ]
    of_process = BoxedLimits(memory_mb=limits.memory_mb, seconds=ceil(limits.seconds * number) + 5)
    made: list[tuple[tuple[CallResult, ...], bytes]] = []
    with _process(box, parts, of_process) as process:
        for _, calls in asked:
            code = _code(process, brief)
            if code is None:
                return None
            results: list[CallResult] = []
            while len(results) < len(calls):
                result, _ = _next(process, brief, limits.wall_seconds)
                if not (result.failure is None or result.detail in _PLAIN_ERRORS):
                    return None
                results.append(result)
            made.append((tuple(results), code))
    return tuple(made)


def _data(source: str, calls: Sequence[str], namespace: Namespace, code: bytes) -> dict[str, Any]:
    asked = {"source": source, "calls": list(calls), "namespace": namespace}
    return {**asked, "code": code, "tells": False}


def _run_calls(
    box: Place, data: dict[str, Any], limits: CallLimits, told: list[bytes] | None = None
) -> tuple[CallResult, ...]:
    """The calls' code goes into `told`."""
    results: list[CallResult] = []
    may_sleep = limits.wall_seconds
    number = len(data["calls"])
    while len(results) < number:
        data = {**data, "first": len(results), "bytes": limits.output_bytes}
        # The kernel's own limit, in case that nobody is left who measures.
        seconds = ceil(limits.seconds * (number - len(results))) + 5
        of_process = BoxedLimits(memory_mb=limits.memory_mb, seconds=seconds)
        with _process(box, [data], of_process) as process:
            if told is not None and data["tells"]:
                data["tells"] = False
                code = _code(process, limits)
                if code is None:
                    continue
                told.append(code)
            while len(results) < number:
                wall = max(may_sleep, limits.wall_seconds * _ALWAYS)
                result, goes_on = _next(process, limits, wall)
                may_sleep -= process.slept
                results.append(result)
                if not goes_on:
                    break
    return tuple(results)


def _process(box: Place, parts: list[dict[str, Any]], limits: BoxedLimits) -> BoxedProcess:
    if isinstance(box, BoxNursery):
        return box.start(parts, limits)
    return BoxedProcess(box, _program(), parts, limits)


def _next(
    process: BoxedProcess, limits: CallLimits, wall_seconds: float
) -> tuple[CallResult, bool]:
    """The next result, and whether the process is there for another one."""
    most = limits.output_bytes + _TAG_BYTES
    try:
        line = process.line(limits.seconds, wall_seconds, most)
    except LateError:
        return CallResult(failure="timeout"), False
    except TooLongError:
        return CallResult(failure="error", detail="too much output"), False
    if line is None:
        return CallResult(failure="crash"), False
    return _read(line), True


def _code(process: BoxedProcess, limits: CallLimits) -> bytes | None:
    """Of the calls; None where it did not come, so that no other line is to be waited for."""
    with suppress(LateError, TooLongError, ValueError):
        line = process.line(limits.seconds, limits.wall_seconds, limits.output_bytes + _TAG_BYTES)
        if line is not None and line.startswith(b"c "):
            return bytes.fromhex(line[_TAG_BYTES:].decode("ascii"))
    return None


def _read(line: bytes) -> CallResult:
    tag, _, rest = line.partition(b" ")
    if tag == b"v":
        with suppress(MalformedValueError):
            return CallResult(value=read_value(rest))
    if tag == b"e" and rest == b"memory":
        return CallResult(failure="memory")
    if tag == b"e" and rest == b"large":
        return CallResult(failure="error", detail="too much output")
    if tag == b"e" and rest.isalnum():
        return CallResult(failure="error", detail=rest[:80].decode("ascii", "replace"))
    return CallResult(failure="error", detail="a forged line")


@lru_cache(maxsize=1)
def _program() -> str:
    return Path(__file__).with_name("boxed_calls.py").read_text(encoding="utf-8")


# Nurseries, in which answers are tried, are reused from answer to answer, one answer at a time. An
# answer waits a moment for one of the usual places; then it gets another, for the others may sleep.
# Where none is available (an older kernel or Python), or one breaks, an answer has a box to itself.

Made = TypeVar("Made")


_MOMENT_S = 0.25


class NurseryPool:
    """`usual` places, and up to `most` while answers sleep. May be shared by threads: work is done
    in the thread that asks for it, as to hand it to another one would cost each answer."""

    def __init__(self, box: CodeBox, limits: CallLimits, usual: int, most: int = 0) -> None:
        self._box, self._limits = box, limits
        most = max(usual, most)
        self._usual, self._all = threading.Semaphore(usual), threading.Semaphore(most)
        # A nursery ends with the thread that made it, and is to outlive who asks for it.
        self._makers = ThreadPoolExecutor(most, thread_name_prefix="boxes")
        self._free: list[BoxNursery] = []
        self._can_be_had: bool | None = None

    def run(self, work: Callable[[Place], Made]) -> Made:
        """What the work made of a place. Raises what it raises, BoxError where no box does its
        part."""
        usual = self._usual.acquire(timeout=_MOMENT_S)
        try:
            with self._all:
                return self._run(work)
        finally:
            if usual:
                self._usual.release()

    def close(self) -> None:
        """End the nurseries, once nobody uses them."""
        while self._free:
            with suppress(BoxError):
                self._free.pop().end()
        self._makers.shutdown()

    def _run(self, work: Callable[[Place], Made]) -> Made:
        nursery = self._nursery()
        if nursery is not None:
            try:
                with suppress(BoxError):
                    return work(nursery)
            finally:
                self._free.append(nursery)
        return work(self._box)

    def _nursery(self) -> BoxNursery | None:
        """The one that was used last, a new one for one that broke; None where none starts, for
        good if none ever did."""
        while self._free:
            with suppress(IndexError, BoxError):
                found = self._free.pop()
                if not found.broken:
                    return found
                found.end()
        if self._can_be_had is not False:
            with suppress(BoxError):
                made = self._makers.submit(nursery_of, self._box, self._limits).result()
                self._can_be_had = True
                return made
            self._can_be_had = bool(self._can_be_had)
        return None

"""A task's tests: calls, and the values that its reference gives. Verdicts on an answer.

The reference runs once for each task, in a box that no answer sees, and its values never enter a
box in which an answer runs: an answer can forge what it says, and does not know what to say.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from agentc_backends.environments.code_tests.source import code_of, forbidden
from agentc_backends.environments.code_tests.values import equal, equals_nothing

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
    behind (`source.py`). None where each is to be made alone. Raises BoxError."""
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

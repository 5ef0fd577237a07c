"""Calls of what an answer defines: values that come back, verdicts, limits, and both namespaces."""

from __future__ import annotations

import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agentc.runtime.sandbox.boxes import CodeBox, boxed_interpreter
from agentc.runtime.sandbox.process import BoxedLimits, BoxedProcess, BoxError
from agentc_backends.environments.code_tests.calls import (
    CallLimits,
    Namespace,
    compile_and_make,
    make_calls,
)
from agentc_backends.environments.code_tests.canaries import BrokenBoxError, assert_holds
from agentc_backends.environments.code_tests.suite import (
    CallSuite,
    score,
    suite_of,
    verdicts,
)

_PATIENT = CallLimits(seconds=5.0, wall_seconds=300.0)
_BULK = """
def bulk_price(quantity):
    total = quantity * {unit}
    if quantity {over} {threshold}:
        total -= {discount}
    return total
"""
_QUANTITIES = (0, 1, 10, 11, 12, 13, 14, 24, 36, 100)


def _bulk(unit: int = 7, over: str = ">", threshold: int = 12, discount: int = 3) -> str:
    return _BULK.format(unit=unit, over=over, threshold=threshold, discount=discount)


@pytest.fixture(scope="module")
def bulk(box: CodeBox) -> CallSuite:
    return suite_of(box, _bulk(), [f"bulk_price({each})" for each in _QUANTITIES], _PATIENT)


def test_a_reference_gives_what_is_expected(bulk: CallSuite) -> None:
    assert bulk.expected == (0, 7, 70, 77, 84, 88, 95, 165, 249, 697)
    assert bulk.unusable == {}


@pytest.mark.parametrize(
    ("answer", "passed"),
    [
        (_bulk(), 10),
        (_bulk(over=">="), 9),
        (_bulk(threshold=24), 7),
        (_bulk(discount=0), 5),
        (_bulk(unit=5), 1),
        ("def bulk_price(quantity): return", 0),
    ],
)
def test_an_answer_is_graded_by_the_share_that_passes(
    box: CodeBox, bulk: CallSuite, answer: str, passed: int
) -> None:
    assert score(verdicts(box, bulk, answer)) == passed / 10


_REFERENCE = "def f(x):\n    return x * 2\n"
_CALLS = ("f(2)", "f(3)")
_ANSWERS = {
    "identical": _REFERENCE,
    "helper": "def g(x):\n    return x * 2\ndef f(x):\n    return g(x)\n",
    "recursion": "def f(x):\n    return 2 if x == 1 else 2 + f(x - 1)\n",
    "import beside": "import math\ndef f(x):\n    return math.floor(x * 2)\n",
    "import inside": "def f(x):\n    import math\n    return math.floor(x * 2)\n",
    "annotation": "from typing import List\ndef f(x: List) -> List:\n    return x * 2\n",
    "endless": "def f(x):\n    while True: pass\n",
    "right after the marker": " def f(x):\n    return x * 2\n",
    "blank before": " \ndef f(x):\n    return x * 2\n",
    "line before": "\ndef f(x):\n    return x * 2\n",
    "```python": f"Here:\n```python\n{_REFERENCE}```\nThat is it.",
    "```python3": f"```python3\n{_REFERENCE}```",
    "```py": f"```py\n{_REFERENCE}```",
    "```": f"```\n{_REFERENCE}```",
    "unterminated": f"```python\n{_REFERENCE}",
    "prose": f"Here is the function.\n{_REFERENCE}",
    "float": "def f(x):\n    return x * 2.0\n",
    "words like them": f"import  os, subprocess, shutil\n{_REFERENCE}# su do exit (\n",
    "forbidden words": f"import  os, subprocess, shutil\n{_REFERENCE}# sudo exit(\n",
    "exit": "def f(x):\n    raise SystemExit\n",
    "exit of one": "def f(x):\n    if x == 2: raise SystemExit\n    return x * 2\n",
    "none": "def f(x):\n    pass\n",
}
_PUBLISHED = {
    "helper": 0.0,
    "recursion": 0.0,
    "import beside": 0.0,
    "endless": 0.0,
    "right after the marker": 0.0,
    "```py": 0.0,
    "prose": 0.0,
    "forbidden words": 0.0,
    "exit": 0.0,
    "exit of one": 0.5,
    "none": 0.0,
}
_FRESH = {"endless": 0.0, "prose": 0.0, "exit": 0.0, "exit of one": 0.5, "none": 0.0}


@pytest.mark.parametrize(("namespace", "less"), [("fresh", _FRESH), ("published", _PUBLISHED)])
def test_what_each_namespace_makes_of_an_answer(
    box: CodeBox, namespace: Namespace, less: dict[str, float]
) -> None:
    """`published`: the released evaluator's table, but that an exit ends a test, where it ended
    the evaluator."""
    suite = suite_of(box, _REFERENCE, _CALLS, CallLimits(0.3, 300.0), namespace)
    scores = {name: score(verdicts(box, suite, answer)) for name, answer in _ANSWERS.items()}
    assert scores == {name: less.get(name, 1.0) for name in _ANSWERS}


@pytest.mark.parametrize(
    ("expected", "given", "verdict"),
    [
        ("4", "4.0", "pass"),
        ("True", "1", "pass"),
        ("(1,)", "[1]", "fail"),
        ("[1]", "(1,)", "fail"),
        ("{1, 2}", "frozenset([2, 1])", "pass"),
        ("{'a': [1, {2: None}]}", "{'a': [1.0, {2: None}]}", "pass"),
        ("{'a': 1, 'b': 2}", "{'b': 2, 'a': 1}", "pass"),
        ("'\\ud800é\"'", "chr(0xd800) + 'é\"'", "pass"),
        ("b'ab'", "bytearray(b'ab')", "pass"),
        ("1 << 5000", "1 << 5000", "pass"),
        ("1e308 * 10", "float('inf')", "pass"),
        ("-0.0", "0", "pass"),
        ("1j", "complex(0, 1)", "pass"),
        ("0.1 + 0.2", "0.3", "fail"),
        ("float('nan')", "float('nan')", "fail"),
        ("[float('nan')]", "[float('nan')]", "fail"),
        ("None", "None", "fail"),
        ("object()", "object()", "fail"),
        ("[None]", "[None]", "pass"),
        ("1 / 0", "1 / 0", "error"),
        ("range(3)", "range(3)", "pass"),
        ("(n for n in [1])", "(n for n in [1])", "fail"),
        ("{'a': 1}", "__import__('collections').Counter('a')", "pass"),
        ("__import__('decimal').Decimal('0.5')", "0.5", "pass"),
    ],
)
def test_values_are_compared_as_python_does(
    box: CodeBox, expected: str, given: str, verdict: str
) -> None:
    suite = suite_of(box, f"def f(): return {expected}", ["f()"], _PATIENT)
    assert verdicts(box, suite, f"def f(): return {given}") == (verdict,)
    if verdict != "pass" and expected == given:
        assert 0 in suite.unusable, "that no answer can pass it is known beforehand"


_ODD = """
def f(n):
    import collections, datetime, decimal, fractions
    if n == 0: return collections.Counter("aab")
    if n == 1: return datetime.date(2020, 2, 29)
    if n == 2: return decimal.Decimal("0.10")
    if n == 3: return fractions.Fraction(1, 3)
    if n == 4: return collections.OrderedDict(a=1, b=2)
    if n == 5: return range(3)
    if n == 6: return [type(each) for each in (1, "a", None)]
    if n == 7: return float("nan")
    if n == 8: return object()
    return None
"""
_RATIO = "def f(n):\n    return (n + 1) / 2 if n > 3 else {'n': n}\n"
_NUMPY = """
def f(n):
    import numpy
    return numpy.float64((n + 1) / 2) if n > 3 else {'n': numpy.int64(n)}
"""
_ORDERED = """
def f(n):
    from collections import OrderedDict
    return (n + 1) / 2 if n > 3 else OrderedDict(n=n)
"""
_EQUAL = """
def f(n):
    class Any:
        def __eq__(self, other): return True
    return Any()
"""
_HALF_HELPED = "K = 2\ndef f(n):\n    return (n + 1) / K if n > 3 else {'n': n}\n"
_TABLE = {
    "numbers of numpy": (_RATIO, _NUMPY, 1.0, 1.0),
    "an ordered dict": (_RATIO, _ORDERED, 1.0, 1.0),
    "odd values": (_ODD, _ODD, 0.7, 0.7),
    "import os": (_RATIO, f"import os\n{_RATIO}", 0.0, 1.0),
    "sudo in a comment": (_RATIO, f"{_RATIO}# not by sudo\n", 0.0, 1.0),
    "exit(": (_RATIO, f"{_RATIO}if f is None: exit(1)\n", 0.0, 1.0),
    "argparse": (_RATIO, f"import argparse\n{_RATIO}", 0.0, 1.0),
    "a constant": (_RATIO, _HALF_HELPED, 0.4, 1.0),
}


@pytest.mark.parametrize("name", _TABLE)
def test_the_released_evaluators_scores(request: pytest.FixtureRequest, name: str) -> None:
    """Of `published`, what the released evaluator gives (measured beside it); of `fresh`, what an
    answer is worth that is a module."""
    reference, answer, *expected = _TABLE[name]
    box = request.getfixturevalue("numpy_box" if "numpy" in answer else "box")
    calls = [f"f({n})" for n in range(10)]
    found = []
    for namespace in ("published", "fresh"):
        suite = suite_of(box, reference, calls, _PATIENT, namespace)
        found.append(score(verdicts(box, suite, answer)))
    assert found == expected


def test_what_equals_everything_is_wrong(box: CodeBox) -> None:
    """The released evaluator takes it for right."""
    for namespace in ("published", "fresh"):
        suite = suite_of(box, _RATIO, ["f(1)", "f(9)"], _PATIENT, namespace)
        assert verdicts(box, suite, _EQUAL) == ("fail", "fail")


def test_a_forbidden_word_is_a_verdict_of_its_own(box: CodeBox) -> None:
    suite = suite_of(box, _RATIO, ["f(1)", "f(9)"], _PATIENT, "published")
    assert verdicts(box, suite, f"{_RATIO}# sudo") == ("forbidden", "forbidden")


def test_a_failure_costs_its_own_test_alone(each_box: CodeBox) -> None:
    answer = """
import os, time
def f(n):
    if n == 1: os._exit(0)
    if n == 2:
        while True: pass
    if n == 3: return bytearray(1 << 40)
    if n == 4: raise SystemExit
    if n == 5: return "x" * 100_000
    return n
"""
    suite = suite_of(
        each_box,
        "def f(n): return n",
        [f"f({n})" for n in range(7)],
        CallLimits(seconds=0.5, wall_seconds=300.0),
    )
    told = verdicts(each_box, suite, answer)
    assert told == ("pass", "crash", "timeout", "memory", "error", "error", "pass")


def test_calls_share_nothing(each_box: CodeBox) -> None:
    source = (
        "seen = []\ndef f():\n    seen.append(1)\n    globals()['g'] = 1\n    return len(seen)\n"
    )
    results = make_calls(each_box, source, ["f()", "f()", "g"], _PATIENT)
    assert [result.value for result in results[:2]] == [1, 1]
    assert (results[2].failure, results[2].detail) == ("error", "NameError")


def test_equal_code_does_the_same_each_time(each_box: CodeBox) -> None:
    source = "def f(): return list({str(i) for i in range(50)})"
    first, second = (make_calls(each_box, source, ["f()"], _PATIENT)[0] for _ in range(2))
    assert first.value == second.value
    assert len(first.value) == 50


@pytest.mark.slow
def test_a_busy_machine_makes_nobody_late(box: CodeBox) -> None:
    """What counts is the time that code computes, whatever else the processors do."""
    source = "import time\ndef f():\n    end = time.process_time() + 0.2\n"
    source += "    while time.process_time() < end: pass\n    return 1\n"
    stop = threading.Event()

    def burn() -> bool:
        while not stop.is_set():
            sum(range(1000))
        return True

    with ThreadPoolExecutor(12) as pool:
        burning = [pool.submit(burn) for _ in range(4)]
        judged = [
            pool.submit(make_calls, box, source, ["f()"], CallLimits(1.0, 300.0)) for _ in range(8)
        ]
        values = [each.result()[0].value for each in judged]
        stop.set()
    assert all(each.result() for each in burning)
    assert values == [1] * 8


@pytest.mark.slow
def test_many_at_once_do_not_mix(each_box: CodeBox) -> None:
    def one(number: int) -> tuple[object, ...]:
        source = f"import os\ndef f(n):\n    if n == 1: os._exit(0)\n    return {number} + n\n"
        results = make_calls(each_box, source, ["f(0)", "f(1)", "f(2)"], _PATIENT)
        return tuple(result.failure or result.value for result in results)

    with ThreadPoolExecutor(6) as pool:
        told = list(pool.map(one, range(24)))
    assert told == [(number, "crash", number + 2) for number in range(24)]


def test_a_box_that_does_not_start_is_no_verdict(each_box: CodeBox) -> None:
    missing = each_box.interpreter._replace(program="/usr/bin/there-is-none")
    with pytest.raises(BoxError, match="there-is-none"):
        make_calls(each_box._replace(interpreter=missing), "def f(): return 1", ["f()"])


def test_canaries_hold_in_each_box(each_box: CodeBox) -> None:
    assert_holds(each_box)


def test_canaries_notice_a_box_that_does_not_hold(
    monkeypatch: pytest.MonkeyPatch, each_box: CodeBox
) -> None:
    """One that tells its code of a variable."""
    from agentc.runtime.sandbox import process

    monkeypatch.setattr(process, "environment", lambda: {"LANG": "C.UTF-8", "A_TOKEN": "x"})
    with pytest.raises(BrokenBoxError, match="see variables"):
        assert_holds(each_box)


def test_packages_can_be_imported_where_they_are_given(each_box: CodeBox) -> None:
    source = "def f():\n    import given\n    return given.VALUE\n"
    assert make_calls(each_box, source, ["f()"], _PATIENT)[0].detail == "ModuleNotFoundError"
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "given.py").write_text("VALUE = 7\n")
        (folder / "given.py").chmod(0o644)
        with_it = each_box._replace(interpreter=boxed_interpreter(packages=(name,)))
        assert make_calls(with_it, source, ["f()"], _PATIENT)[0].value == 7


def test_a_process_is_gone_at_the_end_of_its_context(each_box: CodeBox) -> None:
    program = "def main(answers, data):\n    import time\n    time.sleep(1e6)\n"
    with BoxedProcess(each_box, program, None, BoxedLimits()) as process:
        assert process.running()
    assert not process.running()


_BURNS = """
import time
def burn(seconds):
    began = time.process_time()
    while time.process_time() < began + seconds:
        pass
    return seconds
def sleep(n):
    time.sleep(1e6)
"""


def _delays_are_told() -> bool:
    try:
        return int(Path("/proc/self/schedstat").read_text().split()[1]) > 0
    except (OSError, ValueError, IndexError):
        return False


@pytest.mark.skipif(not _delays_are_told(), reason="the kernel does not tell who waits for it")
def test_only_sleep_counts_by_the_clock(box: CodeBox) -> None:
    """However busy the machine is: each call takes longer by the clock than it may sleep."""
    limits = CallLimits(seconds=30.0, wall_seconds=0.6)
    results = make_calls(box, _BURNS, ["burn(0.7)", "burn(0.7)"], limits)
    assert [(each.value, each.failure) for each in results] == [(0.7, None)] * 2


def test_all_calls_of_an_answer_sleep_for_its_time_and_little_more(
    box: CodeBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    may: list[float] = []
    line = BoxedProcess.line

    def noted(self: BoxedProcess, seconds: float, wall_seconds: float, most: int) -> bytes | None:
        if most > 100:  # not the start's
            may.append(wall_seconds)
        return line(self, seconds, wall_seconds, most)

    monkeypatch.setattr(BoxedProcess, "line", noted)
    calls = ["sleep(1)", "sleep(2)", "burn(0)", "sleep(3)"]
    results = make_calls(box, _BURNS, calls, CallLimits(seconds=30.0, wall_seconds=4.0))
    failures = [each.failure for each in results]
    assert [failures[0], failures[1], failures[3]] == ["timeout"] * 3
    assert may == [4.0, 0.2, 0.2, 0.2]
    if _delays_are_told():
        assert failures[2] is None


def test_calls_are_compiled_beside_the_reference_and_for_all_answers(each_box: CodeBox) -> None:
    calls = ["f(1)", "f(", "f(2)"]
    results, code = compile_and_make(each_box, "def f(x): return 2 * x", calls, _PATIENT)
    assert [(each.value, each.detail) for each in results] == [
        (2, ""),
        (None, "SyntaxError"),
        (4, ""),
    ]
    source = "def f(x): return 3 * x"
    plain = make_calls(each_box, source, calls, _PATIENT)
    for namespace in ("fresh", "published"):
        again = make_calls(each_box, source, calls, _PATIENT, namespace, code)
        assert [(each.value, each.detail) for each in again] == [
            (each.value, each.detail) for each in plain
        ]
    # It is that code which runs, not the text.
    other = make_calls(each_box, source, ["f(7)"] * 3, _PATIENT, code=code)
    assert [each.value for each in other] == [3, 21, 6]


def test_the_code_of_calls_is_told_before_anything_runs_or_not_at_all(box: CodeBox) -> None:
    ends, calls = "import os\nos._exit(0)", ["f(1)", "f(2)"]
    results, code = compile_and_make(box, ends, calls, _PATIENT)
    assert [each.failure for each in results] == ["crash", "crash"]
    source = "def f(x): return x"
    assert [each.value for each in make_calls(box, source, calls, _PATIENT, code=code)] == [1, 2]
    assert code
    short = CallLimits(seconds=5.0, wall_seconds=300.0, output_bytes=100)
    results, code = compile_and_make(box, source, calls, short)
    assert [each.value for each in results] == [1, 2]
    assert code == b""

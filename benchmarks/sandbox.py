"""What an evaluation in a box costs: `python -m benchmarks.sandbox [--times N]`.

One evaluation is ten calls of a small function that a model might have written, from the start of
the box to its end. Beside it stands the start of the same interpreter by itself.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from agentc.runtime.sandbox.boxes import CodeBox, boxed_interpreter
from agentc.runtime.sandbox.probe import probe
from agentc_backends.environments.code_tests.suite import CallSuite, suite_of, verdicts

_ANSWER = "def f(x):\n    return {'twice': [x * 2, x / 3]}\n"
_CALLS = [f"f({number})" for number in range(10)]


def main() -> None:
    """Prints a table in Markdown."""
    parser = argparse.ArgumentParser(prog="benchmarks.sandbox", description=__doc__)
    parser.add_argument("--times", type=int, default=100)
    times = parser.parse_args().times
    program = boxed_interpreter().program
    print("| what | CPU | median | 95 of 100 | a second, 1 at once | 2 at once | 4 at once |")
    print("|---|---|---|---|---|---|---|")

    def bare() -> None:
        subprocess.run([program, "-s", "-S", "-B", "-c", "import ctypes, resource"], check=True)

    _row("the interpreter alone", bare, times)
    for each in probe():
        box = each.box
        if box is None:
            print(f"| {each.kind} | {each.reason} | | | | | |")
            continue
        suite = suite_of(box, _ANSWER, _CALLS)

        _row(f"{box.kind} {box.version}", partial(_evaluate, box, suite), times)


def _evaluate(box: CodeBox, suite: CallSuite) -> None:
    assert set(verdicts(box, suite, _ANSWER)) == {"pass"}


def _row(what: str, play: Callable[[], None], times: int) -> None:
    taken = []
    spent = _processor_seconds()
    for _ in range(times):
        started = time.perf_counter()
        play()
        taken.append((time.perf_counter() - started) * 1e3)
    spent = _processor_seconds() - spent
    rates = []
    for at_once in (1, 2, 4):
        started = time.perf_counter()
        with ThreadPoolExecutor(at_once) as pool:
            list(pool.map(lambda _: play(), range(times)))
        rates.append(f"{times / (time.perf_counter() - started):.0f}")
    high = statistics.quantiles(taken, n=20)[-1]
    cells = [what, f"{spent / times * 1e3:.1f} ms"]
    cells += [f"{statistics.median(taken):.1f} ms", f"{high:.1f} ms", *rates]
    print(f"| {' | '.join(cells)} |")


def _processor_seconds() -> float:
    """Of this process and of all that it has waited for."""
    told = os.times()
    return told.user + told.system + told.children_user + told.children_system


if __name__ == "__main__":
    main()

"""The box in which answers of a server's episodes run, and the tests of its tasks.

A task's reference runs once, in a box of its own; its values are kept here, and never enter a box.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from importlib.util import find_spec
from pathlib import Path

from agentc.runtime.sandbox.interpreter import (
    BoxedInterpreter,
    NoInterpreterError,
    boxed_interpreter,
)
from agentc.runtime.sandbox.kinds import CodeBox
from agentc.runtime.sandbox.probe import choose_box
from agentc_backends.environments.code_tests.calls import CallLimits
from agentc_backends.environments.code_tests.canaries import assert_holds
from agentc_backends.environments.code_tests.suite import (
    CallSuite,
    CallVerdict,
    suite_of,
    verdicts,
)
from agentc_backends.environments.colbench.settings import ColBenchSettings
from agentc_backends.environments.colbench.tasks import CodeTask

_CEILING = 8
"""So many references are held against themselves before anybody is judged; one of as many may be
the data's own fault (a package that is not there, chance, a value that equals nothing)."""


class CeilingError(Exception):
    """References do not pass their own tests, so that nobody could."""


class AnswerJudge:
    """May be shared by threads. As many boxes are open at a time as there are processors."""

    def __init__(self, box: CodeBox, settings: ColBenchSettings) -> None:
        self._box = box
        self._namespace = settings.namespace
        self._limits = CallLimits(
            seconds=settings.test_timeout_s,
            wall_seconds=max(10.0, 10 * settings.test_timeout_s),
            memory_mb=settings.memory_mb,
            output_bytes=settings.output_bytes,
        )
        self._places = threading.BoundedSemaphore(max(2, len(os.sched_getaffinity(0))))
        self._suites: dict[str, Future[CallSuite]] = {}
        self._lock = threading.Lock()

    def facts(self) -> dict[str, str]:
        """What answers run in."""
        return self._box.facts()

    def verdicts(self, task: CodeTask, answer: str | None) -> tuple[CallVerdict, ...]:
        """What came of each test. Raises BoxError."""
        suite = self._suite(task)
        if answer is None:
            return verdicts(self._box, suite, None)
        with self._places:
            return verdicts(self._box, suite, answer)

    def check_ceiling(self, tasks: Sequence[CodeTask]) -> None:
        """Holds the first tasks' references against themselves. Raises CeilingError, BoxError."""
        first = tasks[:_CEILING]
        failed = {
            task.id: judged
            for task in first
            if set(judged := self.verdicts(task, task.reference)) != {"pass"}
        }
        if len(failed) > len(first) // _CEILING:
            named = "; ".join(f"{each}: {', '.join(judged)}" for each, judged in failed.items())
            raise CeilingError(
                f"{len(failed)} of {len(first)} references do not pass their own tests ({named}), "
                "so answers cannot be judged here"
            )

    def _suite(self, task: CodeTask) -> CallSuite:
        """Made once; whoever else needs it meanwhile waits. A failure is not kept."""
        with self._lock:
            found = self._suites.get(task.id)
            mine = found is None
            if found is None:
                found = self._suites[task.id] = Future()
        if mine:
            try:
                with self._places:
                    found.set_result(
                        suite_of(
                            self._box, task.reference, task.calls, self._limits, self._namespace
                        )
                    )
            except BaseException as error:
                with self._lock:
                    del self._suites[task.id]
                found.set_exception(error)
        return found.result()


def open_judge(settings: ColBenchSettings) -> AnswerJudge:
    """Raises NoBoxError, NoInterpreterError, BrokenBoxError, BoxError."""
    box = choose_box(settings.sandbox, None if settings.is_invented else _with_packages())
    assert_holds(box)
    return AnswerJudge(box, settings)


def _with_packages() -> BoxedInterpreter | None:
    """An interpreter with this process's numpy, where its software environment has that: some of
    ColBench's references need it. Raises NoInterpreterError."""
    numpy = find_spec("numpy")
    if numpy is None or numpy.origin is None:
        return None
    found = boxed_interpreter(packages=(str(Path(numpy.origin).parents[1]),))
    asked = [found.program, "-c", "import sys; print(*sys.version_info[:2])"]
    version = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()
    if version != [str(part) for part in sys.version_info[:2]]:
        raise NoInterpreterError(
            f"{found.program} is Python {'.'.join(version)}, and the numpy for it is of another one"
        )
    return found

"""The box in which answers of a server's episodes run, and the tests of its tasks.

A task's reference runs once; its values never enter a box in which an answer runs. Verdicts on code
whose values follow from its text are kept (`../code_tests/suite.py`)."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

from agentc.runtime.sandbox.boxes import (
    BoxedInterpreter,
    CodeBox,
    NoInterpreterError,
    boxed_interpreter,
)
from agentc.runtime.sandbox.probe import choose_box
from agentc.runtime.sandbox.process import BoxError
from agentc_backends.environments.code_tests.calls import CallLimits, Namespace, NurseryPool
from agentc_backends.environments.code_tests.canaries import assert_holds
from agentc_backends.environments.code_tests.suite import (
    EQUALS_NOTHING,
    CallSuite,
    CallVerdict,
    code_of,
    forbidden,
    leaves_nothing,
    repeatable,
    suite_of,
    suites_of,
    verdicts,
)
from agentc_backends.environments.colbench.settings import ColBenchSettings
from agentc_backends.environments.colbench.tasks import CodeTask

_CEILING = 8
"""So many references are held against themselves before anybody is judged, and all must pass."""
_PLACES, _MOST_PLACES = 8, 64
"""At least, however few processors, and while answers sleep: as many as a server has threads, so
that none waits behind one that does."""
_KEPT = 4096
"""Verdicts that are kept at a time: a few hundred bytes each."""
_FOLLOW = frozenset({"pass", "fail", "error"})
"""What a process gives again. Time, memory and an end by a signal are the machine's as well."""


class CeilingError(Exception):
    """References do not pass their own tests, so that nobody could."""


class AnswerJudge:
    """May be shared by threads. More answers may be tried at a time than there are processors."""

    def __init__(
        self, box: CodeBox, settings: ColBenchSettings, tasks: Sequence[CodeTask] = ()
    ) -> None:
        """`tasks` in the order in which they are mostly played: theirs run together. Others may be
        judged as well."""
        self._box = box
        self._namespace = settings.namespace
        self._limits = CallLimits(
            seconds=settings.test_timeout_s,
            wall_seconds=max(10.0, 10 * settings.test_timeout_s),
            memory_mb=settings.memory_mb,
            output_bytes=settings.output_bytes,
        )
        usual = max(_PLACES, len(os.sched_getaffinity(0)))
        self._places = NurseryPool(box, self._limits, usual, _MOST_PLACES)
        self._suites = TaskSuites(self._places, self._limits, self._namespace, tasks)
        self._judged: OrderedDict[tuple[str, bytes], tuple[CallVerdict, ...]] = OrderedDict()
        self._lock = threading.Lock()

    def facts(self) -> dict[str, str]:
        """What answers run in."""
        return self._box.facts()

    def verdicts(self, task: CodeTask, answer: str | None) -> tuple[CallVerdict, ...]:
        """What came of each test. Raises BoxError."""
        suite = self._suites.of(task)
        if answer is None or forbidden(answer, self._namespace):
            return verdicts(self._box, suite, answer)
        code = code_of(answer, self._namespace)
        if code == suite.source and not suite.unusable and repeatable(code):
            return tuple("pass" for _ in suite.calls)  # it gave what is expected
        known = self._cached(task, code)
        if known is not None:
            return known
        judged = self._judge(suite, answer)
        self._cache(task, code, judged)
        return judged

    def unusable(self, task: CodeTask) -> int:
        """How many tests of a task no answer can pass. Raises BoxError."""
        return len(self._suites.of(task).unusable)

    def close(self) -> None:
        """End all boxes."""
        self._places.close()

    def check_box(self) -> None:
        """That the box holds what is tried in it, one for each answer and forked ones. Raises
        BrokenBoxError, BoxError."""
        assert_holds(self._box)
        self._places.run(assert_holds)

    def check_ceiling(self, tasks: Sequence[CodeTask]) -> None:
        """Holds references against themselves, those of the first tasks whose values can be
        compared at all: None and NaN equal nothing anywhere, which is the data's own doing. Raises
        CeilingError, BoxError."""
        held = 0
        for task in tasks[: 2 * _CEILING]:
            suite = self._suites.of(task)
            if set(suite.unusable.values()) & set(EQUALS_NOTHING) or forbidden(
                task.reference, self._namespace
            ):
                continue
            judged = self._judge(suite, task.reference)
            if set(judged) != {"pass"}:
                raise CeilingError(
                    f"the reference of task {task.id} does not pass its own tests "
                    f"({', '.join(judged)}), so answers cannot be judged here. Where the task "
                    "itself is at fault (it needs a package, or draws by chance), leave it out"
                )
            held += 1
            if held == _CEILING:
                return
        if not held:
            raise CeilingError("no reference gives values that can be compared")

    def _judge(self, suite: CallSuite, answer: str) -> tuple[CallVerdict, ...]:
        return self._places.run(lambda place: verdicts(place, suite, answer))

    def _cached(self, task: CodeTask, code: str) -> tuple[CallVerdict, ...] | None:
        with self._lock:
            found = self._judged.get(_key(task, code))
            if found is not None:
                self._judged.move_to_end(_key(task, code))
            return found

    def _cache(self, task: CodeTask, code: str, judged: tuple[CallVerdict, ...]) -> None:
        """Where equal code would be judged alike."""
        if not _FOLLOW.issuperset(judged) or not repeatable(code):
            return
        with self._lock:
            self._judged[_key(task, code)] = judged
            if len(self._judged) > _KEPT:
                self._judged.popitem(last=False)


def _key(task: CodeTask, code: str) -> tuple[str, bytes]:
    return task.id, hashlib.sha256(code.encode("utf-8", "surrogatepass")).digest()


def open_judge(settings: ColBenchSettings, tasks: Sequence[CodeTask] = ()) -> AnswerJudge:
    """For these tasks. Raises NoBoxError, NoInterpreterError, BrokenBoxError, BoxError."""
    box = choose_box(settings.sandbox, None if settings.is_invented else _with_packages())
    judge = AnswerJudge(box, settings, tasks)
    judge.check_box()
    return judge


def _with_packages() -> BoxedInterpreter | None:
    """An interpreter with this process's numpy, where its software stack has that: some of
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


# References without lasting effects run together with those that come next in the data, in one
# process: a fork for one costs more than its calls do.

_TOGETHER = 32
"""References of one process: a fork is a small part of so many, and whoever waits for the last
waits some milliseconds."""
_AHEAD = 16
"""So many tasks before they are reached the next ones are begun with, so that of several episodes
that go through the data side by side one alone is held up."""


class TaskSuites:
    """May be shared by threads. `tasks` come in the data's order; a task that is not among them
    has its reference run alone."""

    def __init__(
        self,
        places: NurseryPool,
        limits: CallLimits,
        namespace: Namespace,
        tasks: Sequence[CodeTask],
    ) -> None:
        self._places, self._limits, self._namespace = places, limits, namespace
        self._tasks = tuple({task.id: task for task in tasks}.values())
        self._numbers = {task.id: number for number, task in enumerate(self._tasks)}
        self._made: dict[str, Future[CallSuite | None]] = {}
        self._alone: set[str] = set()
        self._lock = threading.Lock()

    def of(self, task: CodeTask) -> CallSuite:
        """Made once; whoever else needs it meanwhile waits. A failure is not kept. Raises
        BoxError."""
        made = None
        while made is None:  # the second time it is alone
            with self._lock:
                asked = self._batch_of(task)
                mine = {each.id: Future[CallSuite | None]() for each in asked}
                self._made.update(mine)
                found = self._made[task.id]
            if mine:
                self._make(asked, mine)
            made = found.result()
        return made

    def _batch_of(self, task: CodeTask) -> list[CodeTask]:
        """Whose references are to run now: its own and the next ones, or the next ones of those
        that run already, or none."""
        number = self._numbers.get(task.id)
        if number is None or task.id in self._alone:
            return [] if task.id in self._made else [task]
        if task.id not in self._made:
            return self._following(number) if self._may_share(task) else [task]
        ahead = self._tasks[number + _AHEAD : number + _AHEAD + 1]
        begun = all(each.id in self._made or not self._may_share(each) for each in ahead)
        return [] if begun else self._following(number)

    def _following(self, number: int) -> list[CodeTask]:
        """From there on the next ones that are not made and may share."""
        near = self._tasks[number : number + _AHEAD + _TOGETHER]
        left = (each for each in near if each.id not in self._made and self._may_share(each))
        return [*islice(left, _TOGETHER)]

    def _may_share(self, task: CodeTask) -> bool:
        if task.id in self._alone:
            return False
        if leaves_nothing(code_of(task.reference, self._namespace), task.calls):
            return True
        self._alone.add(task.id)
        return False

    def _make(self, asked: Sequence[CodeTask], mine: dict[str, Future[CallSuite | None]]) -> None:
        try:
            made = self._run(asked)
        except BaseException as error:
            self._forget(mine)
            for future in mine.values():
                future.set_exception(error)
            if isinstance(error, BoxError):
                return  # that of those who wait for them
            raise
        if made is None:
            self._forget(mine, alone=True)
        for number, future in enumerate(mine.values()):
            future.set_result(None if made is None else made[number])

    def _run(self, asked: Sequence[CodeTask]) -> Sequence[CallSuite] | None:
        """None where each is to be made alone."""
        how = (self._limits, self._namespace)
        if len(asked) > 1:
            several = [(task.reference, task.calls) for task in asked]
            return self._places.run(lambda place: suites_of(place, several, *how))
        (task,) = asked
        return (self._places.run(lambda place: suite_of(place, task.reference, task.calls, *how)),)

    def _forget(self, mine: Iterable[str], alone: bool = False) -> None:
        with self._lock:
            for name in mine:
                del self._made[name]
                if alone:
                    self._alone.add(name)

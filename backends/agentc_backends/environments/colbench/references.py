"""The tests of a server's tasks, each made once: their references run when they are first needed.

References that leave nothing behind run together with those that come next in the data, in one
process (`../code_tests/sharing.py`): a fork for one costs more than its calls do.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from itertools import islice

from agentc.runtime.sandbox.process import BoxError
from agentc_backends.environments.code_tests.answer import code_of
from agentc_backends.environments.code_tests.calls import CallLimits, Namespace
from agentc_backends.environments.code_tests.places import CallPlaces
from agentc_backends.environments.code_tests.sharing import leaves_nothing
from agentc_backends.environments.code_tests.suite import CallSuite, suite_of, suites_of
from agentc_backends.environments.colbench.tasks import CodeTask

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
        places: CallPlaces,
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
                asked = self._asked(task)
                mine = {each.id: Future[CallSuite | None]() for each in asked}
                self._made.update(mine)
                found = self._made[task.id]
            if mine:
                self._make(asked, mine)
            made = found.result()
        return made

    def _asked(self, task: CodeTask) -> list[CodeTask]:
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

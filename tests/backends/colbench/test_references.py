"""Tests of tasks: which references run together, each of them once, and what failures cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.backends.colbench.conftest import code_task

from agentc.runtime.sandbox.boxes import CodeBox
from agentc.runtime.sandbox.process import BoxError
from agentc_backends.environments.code_tests import suite
from agentc_backends.environments.code_tests.calls import CallLimits, NurseryPool
from agentc_backends.environments.colbench import judging
from agentc_backends.environments.colbench.judging import _TOGETHER, TaskSuites
from agentc_backends.environments.colbench.tasks import CodeTask

LIMITS = CallLimits(seconds=10.0, wall_seconds=300.0)


def numbered(count: int, **others: str) -> list[CodeTask]:
    """`others`: bodies of other functions, by number."""
    bodies = {str(number): f"return {number}" for number in range(count)} | others
    return [code_task(f"Task {n}.", f"def f(): {body}", ["f()"]) for n, body in bodies.items()]


@pytest.fixture
def places(box: CodeBox) -> Iterator[NurseryPool]:
    made = NurseryPool(box, LIMITS, 4)
    yield made
    made.close()


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The references of each process."""
    told: list[list[str]] = []

    def one(place: Any, reference: str, *others: Any) -> Any:
        told.append([reference])
        return suite.suite_of(place, reference, *others)

    def several(place: Any, asked: Sequence[Any], *others: Any) -> Any:
        told.append([reference for reference, _ in asked])
        return suite.suites_of(place, asked, *others)

    monkeypatch.setattr(judging, "suite_of", one)
    monkeypatch.setattr(judging, "suites_of", several)
    return told


def values(suites: TaskSuites, tasks: Sequence[CodeTask]) -> list[object]:
    return [suites.of(task).expected[0] for task in tasks]


def test_references_run_with_the_next_ones(places: NurseryPool, runs: list[list[str]]) -> None:
    tasks = numbered(3 * _TOGETHER)
    suites = TaskSuites(places, LIMITS, "fresh", tasks)
    for _ in range(2):
        assert values(suites, tasks) == [*range(3 * _TOGETHER)]
    assert [len(each) for each in runs] == [_TOGETHER] * 3
    assert [each for run in runs for each in run] == [task.reference for task in tasks]


def test_doubtful_ones_run_alone(places: NurseryPool, runs: list[list[str]]) -> None:
    tasks = numbered(30, **{"9": "import math; return math.pi", "10": "return id(f) and 10"})
    suites = TaskSuites(places, LIMITS, "fresh", tasks)
    assert values(suites, tasks[::-1])[::-1][8:12] == [8, 3.141592653589793, 10, 11]
    assert sorted(each for run in runs for each in run) == sorted(each.reference for each in tasks)
    assert [each[0] for each in runs if "import" in str(each) or "id" in str(each)] == [
        tasks[10].reference,
        tasks[9].reference,
    ]
    values(TaskSuites(places, LIMITS, "fresh", ()), tasks[:2])
    assert runs[-2:] == [[each.reference] for each in tasks[:2]]


def test_what_costs_one_of_them_its_process_costs_the_others_nothing(
    places: NurseryPool, runs: list[list[str]]
) -> None:
    tasks = numbered(5, **{"2": "return f()"})
    suites = TaskSuites(places, LIMITS, "fresh", tasks)
    made = [suites.of(task) for task in tasks]
    assert [each.expected[0] for each in made] == [0, 1, None, 3, 4]
    assert made[2].unusable == {0: "the reference ends in error RecursionError"}
    assert runs == [
        [each.reference for each in tasks],
        *([each.reference] for each in tasks),
    ]


def test_several_threads_have_each_run_once(places: NurseryPool, runs: list[list[str]]) -> None:
    tasks = numbered(60, **{"20": "return int and 20"}, **{"33": "import math; return 33"})
    suites = TaskSuites(places, LIMITS, "fresh", tasks)
    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(lambda task: suites.of(task).expected[0], tasks)] == [*range(60)]
    ran = [each for run in runs for each in run]
    assert sorted(ran) == sorted(task.reference for task in tasks)


def test_a_box_that_fails_is_asked_again(
    places: NurseryPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = numbered(20)
    suites = TaskSuites(places, LIMITS, "fresh", tasks)

    def broken(*_: Any) -> Any:
        raise BoxError("no more processes")

    with monkeypatch.context() as patched:
        patched.setattr(judging, "suites_of", broken)
        with pytest.raises(BoxError):
            suites.of(tasks[0])
    assert values(suites, tasks) == [*range(20)]
    # Of those that are begun with ahead, it costs the one that was asked for nothing.
    suites = TaskSuites(places, LIMITS, "fresh", numbered(90))
    tasks = numbered(90)
    assert values(suites, tasks[:5]) == [*range(5)]
    with monkeypatch.context() as patched:
        patched.setattr(judging, "suites_of", broken)
        assert values(suites, tasks[:20]) == [*range(20)]
    assert values(suites, tasks) == [*range(90)]

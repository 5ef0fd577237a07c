"""Invented tasks: what their expert earns, what each hidden number decides, and their draws."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from agentc_backends.environments.colbench import invented
from agentc_backends.environments.colbench.humans import ScriptedHuman
from agentc_backends.environments.colbench.invented import InventedTask, invent
from agentc_backends.environments.colbench.settings import ColBenchSettings
from agentc_backends.environments.colbench.tasks import CodeTask

QUESTIONS = 3


def passed(task: CodeTask, answer: str) -> float:
    """The share of tests. Our own generator wrote both sources, so no box is needed."""
    right, given = _values(task.reference, task.calls), _values(answer, task.calls)
    return sum(one == other for one, other in zip(right, given, strict=True)) / len(right)


def _values(source: str, calls: Sequence[str]) -> list[Any]:
    space: dict[str, Any] = {}
    exec(source, space)
    return [eval(call, space) for call in calls]


@pytest.mark.parametrize(
    ("careless", "wander", "tests", "whole"),
    [(1.0, 0.0, 0.331, 0.0), (0.5, 0.2, 0.62, 0.15), (0.0, 0.0, 1.0, 1.0)],
)
def test_an_expert_earns_by_what_it_asks(
    careless: float, wander: float, tests: float, whole: float
) -> None:
    """3,000 tasks; an expert that never asks passes a third of the tests."""
    earned = []
    for index in range(3000):
        drawn = invented.draw_slots("demo", index)
        chance = Random(f"expert x demo/{index}")
        asked, answer = drawn.dialogue(chance, QUESTIONS, careless, wander)
        assert len(asked) <= QUESTIONS
        earned.append(passed(drawn.task(), answer))
    assert sum(earned) / len(earned) == pytest.approx(tests, abs=0.01)
    assert sum(each == 1 for each in earned) / len(earned) == pytest.approx(whole, abs=0.01)


@pytest.mark.parametrize("family", invented.SLOT_FAMILIES, ids=lambda family: family.name)
def test_each_slot_decides_some_tests(family: Any) -> None:
    lost: dict[str, list[float]] = {slot: [] for slot in family.slots}
    for index in range(60):
        chance = Random(index)
        values = family.draw(chance)
        task = invented.SlotTask(family, values, family.slots[:2]).task()
        for slot in family.slots:
            wrong = {
                **values,
                slot: chance.choice([n for n in range(10, 100) if n != values[slot]]),
            }
            lost[slot].append(10 - 10 * passed(task, family.code(wrong)))
    assert all(1 <= sum(each) / len(each) <= 6 for each in lost.values()), lost


def _invented(family: str, **others: Any) -> dict[str, InventedTask]:
    return invent(ColBenchSettings(family=family, **{"invented_tasks": 300, **others}))  # type: ignore[arg-type]


@pytest.mark.parametrize("family", ["slots", "prices"])
def test_tasks_follow_from_their_seed(family: str) -> None:
    one, again = _invented(family), _invented(family)
    assert [each.task for each in one.values()] == [each.task for each in again.values()]
    more = _invented(family, invented_tasks=400)
    assert [*more][:300] == [*one]
    assert not set(one) & set(_invented(family, invented_seed=1))
    assert len(one) == 300
    heads = {each.task.reference.split("(")[0] for each in one.values()}
    assert len(heads) == 12


@pytest.mark.parametrize("family", ["slots", "prices"])
def test_the_expert_asks_what_the_human_tells(family: str) -> None:
    human = ScriptedHuman()
    for each in list(_invented(family).values())[:60]:
        asked, answer = each.dialogue(Random(0), QUESTIONS, 0.0, 0.0)
        told = [human.reply(each.task, (), question) for question in asked]
        assert len(set(told)) == len(told) >= 1
        assert human.reply(each.task, (), "I do not know?") not in told
        assert passed(each.task, answer) == 1.0
        assert passed(each.task, each.dialogue(Random(0), 0, 0.0, 0.0)[1]) < 1.0
        assert len(each.task.calls) == 10


def test_a_careless_expert_differs_by_seed() -> None:
    spread = []
    for each in list(_invented("slots").values())[:50]:
        earned = {
            passed(each.task, each.dialogue(Random(seed), QUESTIONS, 0.5, 0.2)[1])
            for seed in range(6)
        }
        spread.append(max(earned) - min(earned))
    assert sum(spread) / len(spread) >= 0.3

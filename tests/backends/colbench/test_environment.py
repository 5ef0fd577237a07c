"""Episodes whose answers run in a box: grades, namespaces, reports, snapshots, failures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from tests.backends.colbench.conftest import BULK_TASK, Opened, bulk, code_task

from agentc.runtime.sandbox.process import BoxError
from agentc_backends.data.chat.hidden_texts import PLACE, with_privileged
from agentc_backends.environments.code_tests import suite
from agentc_backends.environments.colbench import judging
from agentc_backends.environments.colbench.environment import ColBenchEnvironment
from agentc_backends.environments.colbench.job_serve import open_world
from agentc_backends.environments.colbench.judging import CeilingError
from agentc_backends.environments.colbench.settings import ColBenchSettings
from agentc_backends.environments.colbench.tasks import CodeTask
from agentc_backends.environments.server.environment import EnvironmentFailure

MARKER = "I WANT TO ANSWER:"
DOUBLE = code_task("Write f.", "def f(x):\n    return x * 2\n", ["f(2)", "f(3)"])


def answered(world: ColBenchEnvironment, task: CodeTask, answer: str) -> tuple[float, Any]:
    world.reset(task.id)
    _, reward, done, _, info = world.step(f"{MARKER}\n{answer}")
    assert done
    return reward, info["report"]


def test_answers_are_graded_by_their_tests(opened: Opened) -> None:
    world = opened(BULK_TASK)
    answers = [bulk(), bulk(over=">="), bulk(threshold=24), bulk(discount=0), bulk(unit=5)]
    rewards = [answered(world, BULK_TASK, answer)[0] for answer in answers]
    assert rewards == [1.0, 0.9, 0.7, 0.5, 0.1]


def test_a_reward_may_be_for_all_tests_alone(opened: Opened) -> None:
    world = opened(BULK_TASK, reward="all_tests")
    assert answered(world, BULK_TASK, bulk())[0] == 1.0
    reward, report = answered(world, BULK_TASK, bulk(over=">="))
    assert (reward, report["passed"], report["tests"]) == (0.0, 9, 10)
    assert report["verdicts"].count("fail") == 1


def test_practice_may_be_told_the_reference_as_a_critic_is(opened: Opened) -> None:
    template = "In light that it is: {reference}."
    told, _ = opened(BULK_TASK, reveal=template).reset(BULK_TASK.id)
    plain, _ = opened(BULK_TASK).reset(BULK_TASK.id)
    assert plain == BULK_TASK.description
    message = {"role": "user", "content": plain}
    words = template.replace("{reference}", PLACE)
    [seen] = with_privileged([message], words, BULK_TASK.reference)
    assert told == seen["content"]


@pytest.mark.parametrize(
    ("answer", "fresh", "published"),
    [
        (DOUBLE.reference, 1.0, 1.0),
        ("def g(x):\n    return x * 2\ndef f(x):\n    return g(x)", 1.0, 0.0),
        ("def f(x):\n    return 2 if x == 1 else 2 + f(x - 1)", 1.0, 0.0),
        ("import math\ndef f(x):\n    return math.floor(x * 2)", 1.0, 0.0),
        ("def f(x):\n    if x == 2: raise SystemExit\n    return x * 2.0", 0.5, 0.5),
        (f"Here it is:\n```python3\n{DOUBLE.reference}", 1.0, 1.0),
        (f"```py\n{DOUBLE.reference}```", 1.0, 0.0),
        (f"Here it is.\n{DOUBLE.reference}", 0.0, 0.0),
        ("", 0.0, 0.0),
    ],
)
def test_what_each_namespace_makes_of_an_answer(
    opened: Opened, answer: str, fresh: float, published: float
) -> None:
    assert answered(opened(DOUBLE), DOUBLE, answer)[0] == fresh
    assert answered(opened(DOUBLE, namespace="published"), DOUBLE, answer)[0] == published


def test_a_reference_runs_once(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def counted(box: Any, reference: str, *others: Any) -> Any:
        made.append(reference)
        return suite.suite_of(box, reference, *others)

    monkeypatch.setattr(judging, "suite_of", counted)
    world = opened(BULK_TASK, DOUBLE)
    for _ in range(3):
        answered(world, BULK_TASK, bulk())
        answered(world, DOUBLE, "")
    assert made == [BULK_TASK.reference, DOUBLE.reference]


def test_a_box_that_fails_voids_the_episode(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = opened(DOUBLE)
    world.reset(DOUBLE.id)

    def broken(*_: Any) -> Any:
        raise BoxError("no more processes")

    with monkeypatch.context() as patched:
        patched.setattr(judging, "suite_of", broken)
        with pytest.raises(EnvironmentFailure, match="no more processes"):
            world.step(f"{MARKER}{DOUBLE.reference}")
    assert answered(world, DOUBLE, DOUBLE.reference)[0] == 1.0


@pytest.fixture
def boxes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The answers that went into a box, in their order."""
    judged: list[str] = []

    def counted(box: Any, tests: Any, reply: str) -> Any:
        judged.append(reply)
        return suite.verdicts(box, tests, reply)

    monkeypatch.setattr(judging, "verdicts", counted)
    return judged


def test_equal_answers_to_equal_tasks_are_judged_once(opened: Opened, boxes: list[str]) -> None:
    other = code_task("Write g.", bulk(), ["bulk_price(1)"])
    world = opened(BULK_TASK, DOUBLE, other)
    near, broken = bulk(over=">="), "def bulk_price(quantity): return quantity / 0"
    for _ in range(2):
        assert answered(world, BULK_TASK, near)[0] == 0.9
        # In other words about it, the same code.
        assert answered(world, BULK_TASK, f"So:\n```python\n{near}```")[0] == 0.9
        assert answered(world, BULK_TASK, broken)[1]["verdicts"] == ["error"] * 10
        assert answered(world, other, near)[0] == 1.0
        assert answered(world, BULK_TASK, bulk())[0] == 1.0, "it gave the values in the first place"
    assert boxes == [f"\n{near}", f"\n{broken}", f"\n{near}"]


@pytest.mark.parametrize(
    "body",
    [
        "import random\n    return random.choice([x])",
        "from time import time\n    return x if time() else 0",
        "return x if id(x) else 0",
        "return x if __import__('time').time() else 0",
    ],
)
def test_what_chance_or_a_clock_may_decide_is_judged_again(
    opened: Opened, boxes: list[str], body: str
) -> None:
    world = opened(DOUBLE)
    for _ in range(2):
        answered(world, DOUBLE, f"def f(x):\n    x = 2 * x\n    {body}")
    assert len(boxes) == 2


def test_what_the_machine_may_decide_is_judged_again(opened: Opened, boxes: list[str]) -> None:
    world = opened(DOUBLE, test_timeout_s=0.2)
    for _ in range(2):
        _, report = answered(world, DOUBLE, "def f(x):\n    while x == 2: pass\n    return 2 * x")
        assert report["verdicts"] == ["timeout", "pass"]
    assert len(boxes) == 2


def test_verdicts_that_are_kept_are_bounded(
    opened: Opened, boxes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging, "_KEPT", 2)
    world = opened(DOUBLE)
    first, second, third = (f"def f(x): return {n} * x" for n in range(3))
    for answer in (first, second, first, third, first, second):
        answered(world, DOUBLE, answer)
    assert len(boxes) == 4, "the reference and the one asked for longest ago went first"


def test_nobody_is_judged_by_references_that_fail(opened: Opened) -> None:
    """All must pass; those that say nothing are passed over."""
    right = [code_task(f"Task {n}.", f"def f(): return {n}", ["f()"]) for n in range(9)]
    silent = [code_task(f"Task {n}.", "def f(): return None", ["f()"]) for n in range(9)]
    absent = code_task("Last.", "def f():\n    import not_there", ["f()"])
    chance = code_task("Last.", "import random\ndef f(): return random.random()", ["f()"])
    judge = opened(DOUBLE)._world.judge
    judge.check_ceiling(right)
    judge.check_ceiling([*silent[:8], *right])
    judge.check_ceiling([*right[:8], absent])
    for each in (absent, chance):
        with pytest.raises(CeilingError, match=f"{each.id} does not pass"):
            judge.check_ceiling([*right[:7], each])
    with pytest.raises(CeilingError, match="no reference gives values"):
        judge.check_ceiling(silent)


def test_the_reference_is_in_no_snapshot(opened: Opened) -> None:
    world = opened(BULK_TASK)
    world.reset(BULK_TASK.id)
    world.step("Is there a discount?")
    snapshot = json.loads(json.dumps(world.snapshot()))
    assert "total -= 3" not in json.dumps(snapshot)
    other = opened(BULK_TASK)
    other.restore(snapshot)
    assert other.snapshot() == snapshot
    assert other.step(f"{MARKER}{bulk()}") == world.step(f"{MARKER}{bulk()}")
    done = opened(BULK_TASK)
    done.restore(json.loads(json.dumps(other.snapshot())))
    assert done.step("more")[2]


def test_the_reference_is_the_hidden_text_and_nowhere_else(opened: Opened) -> None:
    """A canary in the reference comes out by one door alone."""
    canary = "kettle-7431"
    reference = f"{bulk()}    # {canary}\n"
    task = code_task(BULK_TASK.description, reference, BULK_TASK.calls)
    world = opened(task)
    assert world.hidden_text(task.id) == (reference, "text/x-python")
    assert "privileged" in world.capabilities
    said: list[object] = [world.identity(), world.facts(), world.reset(task.id)]
    for action in ("Is there a discount?", "What is total?", f"{MARKER}\n{bulk()}", "more"):
        said += [world.step(action), world.snapshot()]
    assert canary not in repr(said)


@pytest.mark.parametrize(
    "change",
    [
        {"task_id": "another"},
        {"version": 2},
        {"said": [["only one"]]},
        {"said": [["a", "b"]] * 10},
        {"counts": {"unknown": 0}},
        {"counts": {"unknown": -1, "cut": 0, "code_like": 0}},
        {"answer": 3},
        {"answer_from": "nowhere"},
        {"done": True},
        {"verdicts": ["pass"], "done": True},
        {"verdicts": ["perhaps"] * 10, "done": True},
    ],
)
def test_a_malformed_snapshot_changes_nothing(opened: Opened, change: dict[str, Any]) -> None:
    world = opened(BULK_TASK)
    world.reset(BULK_TASK.id)
    world.step("Is there a discount?")
    before = world.snapshot()
    with pytest.raises(ValueError, match=r"snapshot|round|verdict"):
        world.restore({**before, **change})
    assert world.snapshot() == before


def test_invented_tasks_are_opened_with_their_expert() -> None:
    world = open_world(ColBenchSettings(invented_tasks=20, rounds=4))()
    task = world.tasks("train")[0]
    world.reset(task)
    said: Sequence[str] = [each.action for each in world.expert_steps(task)]  # type: ignore[attr-defined]
    *_, last = [world.step(action) for action in said]
    assert (last[1], last[2]) == (1.0, True)
    assert world.facts()["sandbox"]["kind"] in ("bubblewrap", "landlock")  # type: ignore[attr-defined]

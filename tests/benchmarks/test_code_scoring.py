"""The plain loop that ours is measured beside scores as the released evaluator is known to."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest
from benchmarks.code_scoring import (
    _ticks,
    answers_of,
    boxed_scores,
    judged_scores,
    one_of_each,
    plain_scores,
)

from agentc.runtime.sandbox.probe import choose_box, probe
from agentc_backends.environments.code_tests import suite
from agentc_backends.environments.code_tests.calls import Place
from agentc_backends.environments.code_tests.suite import CallSuite, CallVerdict
from agentc_backends.environments.colbench import judging
from agentc_backends.environments.colbench.judging import AnswerJudge
from agentc_backends.environments.colbench.settings import ColBenchSettings
from agentc_backends.environments.colbench.tasks import CodeTask

SETTINGS = ColBenchSettings(tasks="tasks.jsonl", namespace="published")

DOUBLE = CodeTask(
    id="double",
    description="Write f.",
    reference="def f(x):\n    return x * 2\n",
    calls=("f(2)", "f(3)"),
)
ANSWERS = {
    DOUBLE.reference: 1.0,
    "def g(x):\n    return x * 2\ndef f(x):\n    return g(x)": 0.0,
    "def f(x):\n    return 2 if x == 1 else 2 + f(x - 1)": 0.0,
    "import math\ndef f(x):\n    return math.floor(x * 2)": 0.0,
    "def f(x):\n    import math\n    return math.floor(x * 2)": 1.0,
    "def f(x):\n    return x * 2.0": 1.0,
    f"```python3\n{DOUBLE.reference}```": 1.0,
    f"```py\n{DOUBLE.reference}```": 0.0,
    "def f(x):\n    if x == 2: raise SystemExit\n    return x * 2": 0.5,
    "": 0.0,
}


def test_scores_of_the_loop() -> None:
    assert plain_scores((DOUBLE, tuple(ANSWERS))) == tuple(ANSWERS.values())


def test_scores_of_a_box_are_the_same() -> None:
    if all(each.box is None for each in probe()):
        pytest.skip("there is no box on this machine")
    case = (DOUBLE, (*answers_of(DOUBLE), *ANSWERS))
    box = choose_box()
    expected = plain_scores(case)
    assert boxed_scores(box, case) == expected
    judge = AnswerJudge(box, SETTINGS, [DOUBLE])
    assert judged_scores(judge, 2, [case]) == [expected]
    judge.close()
    assert plain_scores(case)[:3] == (1.0, 0.0, 0.0)


def test_no_answer_is_known_to_the_judge_by_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is tried in a box, so that it is a trial that is timed."""
    if all(each.box is None for each in probe()):
        pytest.skip("there is no box on this machine")
    tried: list[str] = []

    def counted(place: Place, tests: CallSuite, answer: str) -> tuple[CallVerdict, ...]:
        tried.append(answer)
        return suite.verdicts(place, tests, answer)

    monkeypatch.setattr(judging, "verdicts", counted)
    tasks = [replace(DOUBLE, id=str(number)) for number in range(4)]
    cases = [*((task, answers_of(task)) for task in tasks), *one_of_each(tasks)]
    for each in (cases[:4], cases[4:]):
        judge = AnswerJudge(choose_box(), SETTINGS, tasks)
        scores = judged_scores(judge, 1, each)
        judge.close()
        assert scores == [*map(plain_scores, each)]
        assert tried == [answer for _, answers in each for answer in answers]
        tried.clear()


def test_a_process_that_ends_while_time_is_read_costs_the_bench_nothing() -> None:
    with subprocess.Popen([sys.executable, "-c", "pass"]) as ended:
        pass
    assert _ticks(str(ended.pid)) == 0
    assert _ticks("self") > 0

"""More answers that sleep than there are processes for tests: nobody else waits for them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.backends.colbench.conftest import code_task

from agentc.runtime.sandbox.boxes import CodeBox
from agentc_backends.environments.colbench.judging import _PLACES, AnswerJudge
from agentc_backends.environments.colbench.settings import ColBenchSettings

TASK = code_task("Write f.", "def f(x):\n    return x * 2\n", ["f(2)", "f(3)"])
SLEEPS = "import time\ndef f(x):\n    time.sleep({})\n    return x * 2 + {}\n"
NAP_S = 30


@pytest.mark.slow
def test_an_answer_does_not_wait_behind_those_that_sleep(box: CodeBox) -> None:
    settings = ColBenchSettings(tasks="tasks.jsonl", test_timeout_s=60.0)
    judge = AnswerJudge(box, settings)
    judge.verdicts(TASK, "")  # the reference's values
    many = 2 * _PLACES + 1
    with ThreadPoolExecutor(many) as pool:
        asleep = [
            pool.submit(judge.verdicts, TASK, SLEEPS.format(f"{NAP_S} if x == 2 else 0", number))
            for number in range(many)
        ]
        assert judge.verdicts(TASK, "def f(x): return x + x") == ("pass", "pass")
        assert not any(each.done() for each in asleep)
        # And what they slept is theirs alone: none was late for having waited.
        verdicts = [each.result() for each in asleep]
    assert verdicts == [("pass", "pass")] + [("fail", "fail")] * (many - 1)

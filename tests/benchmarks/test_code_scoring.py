"""The plain loop that ours is measured beside scores as the released evaluator is known to."""

from __future__ import annotations

import pytest
from benchmarks.code_scoring import answers_of, boxed_scores, plain_scores

from agentc.runtime.sandbox.probe import choose_box, probe
from agentc_backends.environments.code_tests.calls import CallLimits
from agentc_backends.environments.code_tests.places import CallPlaces
from agentc_backends.environments.colbench.tasks import CodeTask

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
    assert boxed_scores(lambda work: work(box), case) == expected
    places = CallPlaces(box, CallLimits(), 1)
    try:
        assert boxed_scores(places.run, case) == expected
    finally:
        places.close()
    assert plain_scores(case)[:3] == (1.0, 0.0, 0.0)

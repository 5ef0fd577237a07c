"""The scripted human: facts that tasks bring along, and facts read off a reference."""

from __future__ import annotations

from tests.backends.colbench.conftest import code_task

from agentc_backends.environments.colbench.humans import UNKNOWN, ScriptedHuman, derived_facts
from agentc_backends.environments.colbench.tasks import HumanFact

FACTS = (
    HumanFact(("unit", "price"), "One costs 7."),
    HumanFact(("threshold",), "More than 12 are many."),
    HumanFact(("discount",), "It is 3."),
)
PRICED = code_task("Write it.", "def f(): pass", ["f()"], facts=FACTS)
LEVEL = code_task(
    "Write level(reading, strict=False).",
    """
def level(reading, strict=False):
    if reading < 0:
        raise ValueError("below zero")
    if reading > 12:
        return "high"
    for limit in (3, 6):
        scale = limit * 2
    return reading * scale
""",
    ["level(1)"],
)


def told(question: str, task: object = PRICED) -> str:
    return ScriptedHuman().reply(task, (), question)  # type: ignore[arg-type]


def test_a_question_gets_the_fact_that_it_names() -> None:
    assert told("What is the UNIT price, please?") == "One costs 7."
    assert told("And the threshold?") == "More than 12 are many."
    assert told("discount") == "It is 3."


def test_anything_else_is_not_known() -> None:
    for question in ("", "What is the unit?", "The weather?", "discounts"):
        assert told(question) == UNKNOWN


def test_two_things_at_once_are_not_told() -> None:
    assert told("What are threshold and discount?") == UNKNOWN


def test_facts_of_a_reference() -> None:
    sentences = [fact.sentence for fact in derived_facts(LEVEL.reference)]
    assert sentences == [
        "It takes reading, strict.",
        "The default of strict is False.",
        "It returns reading * scale.",
        "It raises ValueError('below zero') when reading < 0.",
        "It returns 'high' when reading > 12.",
        "It goes through (3, 6).",
        "scale is limit * 2.",
    ]


def test_questions_about_a_reference() -> None:
    assert told("What inputs does it take?", LEVEL) == "It takes reading, strict."
    assert told("When is an error raised?", LEVEL).startswith("It raises ValueError")
    assert told("What happens above 12?", LEVEL) == "It returns 'high' when reading > 12."
    assert told("What is the default of strict?", LEVEL) == "The default of strict is False."
    assert told("Do you like music?", LEVEL) == UNKNOWN


def test_what_is_no_python_has_no_facts() -> None:
    for source in ("", "def f(", "\0", "(" * 100_000):
        assert derived_facts(source) == ()

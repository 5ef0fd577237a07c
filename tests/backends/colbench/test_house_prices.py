"""Invented tasks of prices: streams, references, tests by slot, the human's facts, the expert."""

from __future__ import annotations

from random import Random

import pytest

from agentc_backends.environments.colbench.house_prices import (
    CALLS,
    KINDS,
    expert,
    question,
    source,
    task,
    usual,
)


def passed(reference: str, answer: str, function: str, calls: tuple[tuple[str, int], ...]) -> int:
    """How many calls two sources of ours agree on."""
    ours: dict[str, object] = {}
    theirs: dict[str, object] = {}
    exec(reference, ours)
    exec(answer, theirs)
    return sum(ours[function](*call) == theirs[function](*call) for call in calls)  # type: ignore[operator]


def test_a_task_is_a_function_of_its_stream_and_index() -> None:
    assert task("train", 5) == task("train", 5)
    assert task("train", 5) != task("train", 6)
    assert task("train", 5) != task("test", 5)


@pytest.mark.parametrize("index", range(50))
def test_the_price_decides_eight_of_the_tests(index: int) -> None:
    made = task("train", index)
    assert len(made.calls) == CALLS
    for told, right in ((1, 10), (0, 2)):
        prices = dict(list(made.prices.items())[:told])
        answer = source(made.function, prices)
        assert passed(made.reference, answer, made.function, made.calls) == right


def test_the_description_names_all_kinds_and_no_price() -> None:
    for index in range(50):
        made = task("train", index)
        assert all(f'"{kind}"' in made.description for kind in made.kinds)
        assert len(made.kinds) == KINDS
        assert not any(str(price) in made.description for price in made.prices.values())


def test_the_human_has_a_sentence_for_every_kind() -> None:
    made = task("train", 0)
    told = {fact.keys[0]: fact.sentence for fact in made.facts}
    assert set(told) == set(made.kinds)
    for kind in made.kinds:
        price = made.prices.get(kind)
        assert told[kind] == (
            f'No, not "{kind}".' if price is None else f'Yes, {{"{kind}": {price}}}.'
        )


@pytest.mark.parametrize(
    ("custom", "low", "high"), [(0.0, 0.13, 0.21), (0.8, 0.8, 0.87), (1, 1, 1)]
)
def test_places_keep_their_custom_in_a_share_of_tasks(
    custom: float, low: float, high: float
) -> None:
    made = [task("train", index, custom) for index in range(1000)]
    kept = sum(set(t.prices) == {usual(t.place, list(t.kinds))} for t in made)
    # A kind drawn out of six is the usual one once in six.
    assert low <= kept / len(made) <= high


def test_a_careless_expert_knows_no_custom_and_stops_when_all_is_told() -> None:
    rng = Random(0)
    useful = asked = 0
    for index in range(1000):
        made = task("train", index)
        questions = expert(made, rng, questions=3, stop=0.0, repeat=0.0)
        assert len(set(questions)) == len(questions) <= 3
        useful += questions[0] in map(question, made.prices)
        asked += 1
        told = [question(kind) in questions for kind in made.prices]
        assert len(questions) == 3 or all(told)
    assert 0.13 < useful / asked < 0.21

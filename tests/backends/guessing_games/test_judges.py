"""Who wins under the released rules and under the strict ones, turn by turn."""

from __future__ import annotations

import pytest

from agentc_backends.environments.guessing_games.cities import city_table
from agentc_backends.environments.guessing_games.games import (
    INVALID,
    REFUSAL,
    UPSTREAM_REFUSAL,
    judge_city,
    judge_object,
)
from agentc_backends.environments.guessing_games.objects import object_table
from agentc_backends.environments.guessing_games.secrets import Guessable, Secret

OBJECTS, CITIES = object_table().guessable, city_table().guessable


def secret(known: Guessable, name: str) -> Secret:
    found = known.named(name)
    return next(one for one in known.secrets if one.id == found)


@pytest.mark.parametrize(
    ("word", "question", "raw", "answer", "won"),
    [
        ("basketball", "Is it a basketball?", "yes", "Yes.", True),
        ("basketball", "Is it a basketball?", "no", "No.", False),
        ("soccer ball", "Is it a soccer ball?", "yes", "Yes.", False),
        ("airplane", "Is it a plane ?!", "yes", "Yes.", True),
        ("basketball", "Is it alive?", "I do not know", "No.", False),
        ("basketball", "Is it alive?", "maybe", INVALID, False),
        ("basketball", "", "no", "No.", False),
        ("basketball", '"Is it a basketball?"', "yes", "Yes.", True),
        ("basketball", 'Is it a "basketball"?', "yes", "Yes.", False),
        ("cat", "dog horse lion cat", "yes", "Yes.", True),
    ],
)
def test_released_rules_for_objects(
    word: str, question: str, raw: str, answer: str, won: bool
) -> None:
    verdict = judge_object("upstream_v1", OBJECTS, secret(OBJECTS, word), question, lambda: raw)
    assert (verdict.answer, verdict.won) == (answer, won)


@pytest.mark.parametrize(
    ("word", "question", "raw", "answer", "won"),
    [
        ("basketball", "Is it a basketball?", "yes", "Yes.", True),
        # The oracle has no say in guesses.
        ("basketball", "Is it a basketball?", "no", "Yes.", True),
        ("basketball", "Is it a football?", "yes", "No.", False),
        ("soccer ball", "Is it a soccer ball?", "no", "Yes.", True),
        ("lawn mower", "My final guess is a lawn mower.", "no", "Yes.", True),
        ("airplane", "Is it a plane ?!", "no", "Yes.", True),
        ("pants", "Is it a pair of pants?", "no", "Yes.", True),
        ("basketball", 'Is it a "basketball"?', "no", "Yes.", True),
        ("basketball", "Is it alive?", "I do not know", INVALID, False),
        ("basketball", "Is it alive?", "nothing of the kind", INVALID, False),
        ("basketball", "Is it alive?", "No, it is not.", "No.", False),
        ("basketball", "", "yes", INVALID, False),
        ("basketball", "x" * 1001 + " basketball", "yes", INVALID, False),
        # Many names at once are no guess.
        ("cat", "dog horse lion cat", "yes", "Yes.", False),
        ("cat", "Is it a dog or a cat?", "yes", "Yes.", False),
    ],
)
def test_strict_rules_for_objects(
    word: str, question: str, raw: str, answer: str, won: bool
) -> None:
    verdict = judge_object("strict_v2", OBJECTS, secret(OBJECTS, word), question, lambda: raw)
    assert (verdict.answer, verdict.won) == (answer, won)


EVERY_CITY = "Is it " + ", ".join(one.names[0] for one in CITIES.secrets) + "?"


@pytest.mark.parametrize(
    ("city", "question", "upstream", "strict"),
    [
        ("Lima", "What is the climate like in your city?", True, False),
        ("Cali", "Is it in California?", True, False),
        ("Rome", "Does it have a promenade?", True, False),
        ("Paris", "How is it in comparison to others?", True, False),
        ("Singapore", "Is your city located in Singapore?", True, False),
        ("Bombay", "Is it Mumbai?", False, True),
        ("Bombay", "Is it Bombay, India?", True, True),
        ("Bombay", "Is it Bombay, Peru?", True, False),
        ("Kiev", "Are you from Kyiv?", False, True),
        ("Xian", "Is the city you are from Xi'an?", False, True),
        ("Paris", "Is your home town London?", False, False),
        ("Paris", "Is your city near Paris?", True, False),
        ("Paris", EVERY_CITY, True, False),
    ],
)
def test_who_names_a_city(city: str, question: str, upstream: bool, strict: bool) -> None:
    for judge, won in (("upstream_v1", upstream), ("strict_v2", strict)):
        verdict = judge_city(judge, CITIES, secret(CITIES, city), question, lambda: "Perhaps.")
        assert verdict.won == won, judge


@pytest.mark.parametrize(
    ("city", "raw", "upstream", "strict"),
    [
        ("Paris", "I live in Paris.", UPSTREAM_REFUSAL, REFUSAL),
        ("Bombay", "It is called Mumbai today.", "It is called Mumbai today.", REFUSAL),
        ("Lima", "The climate is mild.", UPSTREAM_REFUSAL, "The climate is mild."),
        ("Lima", "It is L-i-m-a.", "It is L-i-m-a.", REFUSAL),
    ],
)
def test_the_citys_name_never_stands_in_an_answer(
    city: str, raw: str, upstream: str, strict: str
) -> None:
    for judge, answer in (("upstream_v1", upstream), ("strict_v2", strict)):
        verdict = judge_city(judge, CITIES, secret(CITIES, city), "Where?", lambda: raw)
        assert verdict.answer == answer, judge


def test_a_leak_after_the_name_is_refused_and_the_game_won() -> None:
    verdict = judge_city(
        "upstream_v1", CITIES, secret(CITIES, "Paris"), "Is it Paris?", lambda: "Yes, Paris"
    )
    assert (verdict.answer, verdict.won) == (UPSTREAM_REFUSAL, True)

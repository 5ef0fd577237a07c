"""The tables of facts: what they answer, what they refuse, and that they tell secrets apart."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentc_backends.environments.guessing_games.cities import city_table
from agentc_backends.environments.guessing_games.expert import GuessingPlanner
from agentc_backends.environments.guessing_games.objects import object_table

TABLES = [object_table(), city_table()]
SHARED = Path(__file__).resolve().parents[3].parent / "shared" / "data"


@pytest.mark.parametrize("table", TABLES)
def test_each_question_of_a_table_divides_its_secrets(table) -> None:  # type: ignore[no-untyped-def]
    for question in table.questions:
        answers = {table.answer(one.id, question) for one in table.guessable.secrets}
        assert answers == {"Yes.", "No."}, question


def test_a_facts_own_question_is_not_taken_for_another() -> None:
    table = object_table()
    for fact in table.facts:
        told = {
            s.id for s in table.guessable.secrets if table.answer(s.id, fact.question) == "Yes."
        }
        assert told == fact.holds, fact.question


@pytest.mark.parametrize("table", TABLES)
def test_no_two_secrets_share_a_name(table) -> None:  # type: ignore[no-untyped-def]
    for one in table.guessable.secrets:
        assert table.guessable.guess(table.guess_of(one.id)) == one.id
        assert {table.guessable.guess(f"Is it {name}?") for name in one.names} == {one.id}


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("seed", [0, 3])
def test_the_expert_wins_every_game_in_good_time(table, seed: int) -> None:  # type: ignore[no-untyped-def]
    secrets = tuple(one.id for one in table.guessable.secrets)
    expert = GuessingPlanner(table, secrets)
    lengths = []
    for secret in secrets:
        turns = expert.plan(secret, seed)
        assert table.guessable.guess(turns[-1].action) == secret
        lengths.append(len(turns))
    # log2 of 157 is 7.3; one question more is the guess.
    assert max(lengths) <= 12
    assert sum(lengths) / len(lengths) < 9


@pytest.mark.parametrize(
    ("secret", "question", "answer"),
    [
        ("cat", "Is it a living thing?", "Yes."),
        ("cat", "Is the object an animal?", "Yes."),
        ("carrot", "Can you eat it?", "Yes."),
        ("carrot", "Is it something that you can eat?", "Yes."),
        ("carrot", "Is it edible?", "Yes."),
        ("car", "Does it have wheels?", "Yes."),
        ("car", "Is it something that has wheels?", "Yes."),
        ("hat", "Is it typically worn on the head?", "Yes."),
        ("ship", "Is it bigger than a car?", "Yes."),
        ("spoon", "Is it commonly found in the kitchen?", "Yes."),
        ("spoon", "Is it a type of vehicle?", "No."),
        ("orange", "Could it be a lemon?", None),
        ("orange", "Is it alive or dead?", None),
        ("orange", "Is it not edible?", None),
        ("orange", "Tell me what it is", None),
    ],
)
def test_questions_about_objects(secret: str, question: str, answer: str | None) -> None:
    assert object_table().answer(secret, question) == answer


@pytest.mark.parametrize(
    ("secret", "question", "answer"),
    [
        ("Lima, Peru", "Is your hometown located in South America?", "Yes."),
        ("Lima, Peru", "Is the city you are from the capital of its country?", "Yes."),
        ("Cali, Colombia", "Is your city the capital of Colombia?", "No."),
        ("Cali, Colombia", "Is your city located in the Andes?", "Yes."),
        ("Houston, USA", "Is your city located in the United States?", "Yes."),
        ("Qingdao, China", "Is your city located on the coast?", "Yes."),
        ("Qingdao, China", "Is your city located in the northern part of China?", "No."),
        ("Harbin", "Is your city located in the northeastern part of China?", "Yes."),
        ("Malang, Indonesia", "Is your city located on the island of Java?", "Yes."),
        ("Medan, Indonesia", "Is your city in the southern hemisphere?", "No."),
        ("Madras, India", "What is the predominant language spoken in your city?",
         "The main language is Tamil."),
        ("Cairo, Egypt", "Based on this, my next question would be:\n\nWhat is the climate like?",
         "The climate is desert."),
        ("Cairo, Egypt", "Does your city have a population of over 5 million people?", "Yes."),
        ("Cairo, Egypt", "Does the name of your city start with the letter C?", "Yes."),
        ("Cairo, Egypt", "Is your city in Africa or in Asia?", None),
        ("Cairo, Egypt", "Is your city known for its street food?", None),
        ("Cairo, Egypt", "What is the name of your city?", None),
    ],
)  # fmt: skip
def test_questions_about_cities(secret: str, question: str, answer: str | None) -> None:
    table = city_table()
    found = secret if secret in table.cities else table.guessable.named(secret)
    assert found is not None
    assert table.answer(found, question) == answer


def test_lists_are_those_of_the_released_code() -> None:
    objects, cities = (SHARED / part for part in (
        "twenty_questions/archer_objects.json", "guess_my_city/archer_cities.json"))  # fmt: skip
    if not objects.is_file():
        pytest.skip(f"the released lists are not at {SHARED}")
    listed = [
        (category.lower(), tuple(name.strip().lower() for name in entry.split(";")))
        for category, entries in json.loads(objects.read_text()).items()
        for entry in entries
    ]
    assert [(s.group, s.names) for s in object_table().guessable.secrets] == listed
    assert [s.id for s in city_table().guessable.secrets] == json.loads(cities.read_text())


def test_an_expert_of_less_skill_plays_some_games_poorly() -> None:
    table = object_table()
    secrets = tuple(one.id for one in table.guessable.secrets)[:10]
    good = GuessingPlanner(table, secrets)
    mixed = GuessingPlanner(table, secrets, skill=0.3, questions=20)
    well = 0
    for seed in range(100):
        for secret in secrets:
            game = mixed.plan(secret, seed)
            assert game == mixed.plan(secret, seed)
            well += game == good.plan(secret, seed)
            assert len(game) <= 20
            guessed = [turn.action for turn in game].count(table.guess_of(secret))
            assert guessed == (len(game) < 20 or game[-1].action == table.guess_of(secret))
    assert 230 <= well <= 370  # of 1,000 at 0.3: five standard deviations

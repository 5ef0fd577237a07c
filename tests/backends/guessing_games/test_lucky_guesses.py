"""Final guesses, the expert that tries its luck, and what its games are worth by the rules."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from pathlib import Path

import pytest

from agentc.backend_api import load_backends
from agentc.compilation import compile_spec
from agentc.program.settings import settings_from
from agentc_backends.environments.guessing_games.backend import TWENTY_QUESTIONS
from agentc_backends.environments.guessing_games.environment import GuessingEnvironment
from agentc_backends.environments.guessing_games.expert import GuessingPlanner
from agentc_backends.environments.guessing_games.job_serve import opener
from agentc_backends.environments.guessing_games.objects import object_table
from agentc_backends.environments.guessing_games.settings import GuessingSettings

ROOT = Path(__file__).resolve().parents[3]
TABLE = object_table()
QUESTIONS = 10
GUESSING = {
    "game": "twenty_questions", "objects": "subset", "splits": "together",
    "questions": QUESTIONS, "guess": "final",
}  # fmt: skip


def opened(**settings: object) -> GuessingEnvironment:
    world = opener({**GUESSING, **settings})()
    assert isinstance(world, GuessingEnvironment)
    return world


SECRETS = tuple(opened().tasks("all"))
ONE, OTHER = SECRETS[:2]
ASKER = GuessingPlanner(TABLE, SECRETS, final=True)


@pytest.mark.parametrize(
    ("reward", "won", "lost"), [("questions_left", 9, 0), ("per_question", -1, -10)]
)
def test_a_wrong_guess_ends_the_game_as_if_all_were_asked(
    reward: str, won: float, lost: float
) -> None:
    for guess, total in ((ONE, won), (OTHER, lost)):
        world = opened(reward=reward)
        opening, _ = world.reset(ONE)
        assert opening.endswith("A wrong guess ends the game.")
        rows = [world.step(said) for said in ("Is it alive?", f"Is it a {guess}?", "Is it alive?")]
        assert [row[2] for row in rows] == [False, True, True]
        assert math.fsum(row[1] for row in rows) == total
        assert rows[2][0] == "The game is over."
        assert world.reward_range[0] <= total <= world.reward_range[1]


def test_what_names_no_secret_is_a_question_like_others() -> None:
    world = opened(unknown="no")
    world.reset(ONE)
    for said in ("Is it a unicorn?", f"Is it {OTHER} or {ONE}?", "", "Can you eat it?"):
        assert not world.step(said)[2]
    # A thing of the long list is a guess, whether it is among the ten or not.
    assert world.step("Is it a lawn mower?")[1:3] == (0.0, True)


def test_without_the_option_a_wrong_guess_costs_a_question() -> None:
    world = opened(guess="any")
    opening, _ = world.reset(ONE)
    assert "ends the game" not in opening
    assert not world.step(f"Is it a {OTHER}?")[2]
    assert world.step(f"Is it a {ONE}?")[1:3] == (9.0, True)
    options = world.identity()["options"]
    assert options["guess"] == "any"
    assert "expert_guesses" not in options, "it changes no rule of the game"
    assert opened().identity()["options"]["guess"] == "final"


def test_a_lost_game_is_restored_and_one_that_cannot_be_is_not() -> None:
    world, other = opened(), opened()
    world.reset(ONE)
    world.step("Is it alive?")
    state = json.loads(json.dumps(world.snapshot()))
    other.restore(state)
    assert other.step(f"Is it a {OTHER}?") == world.step(f"Is it a {OTHER}?")
    lost = json.loads(json.dumps(world.snapshot()))
    assert (lost["won"], lost["done"]) == (False, True)
    other.restore(lost)
    assert other.step("Is it alive?")[0] == "The game is over."
    for wrong in ({"turns": []}, {"won": True, "done": False}):
        with pytest.raises(ValueError, match="do not agree"):
            other.restore({**lost, **wrong})
    with pytest.raises(ValueError, match="do not agree"):
        opened(guess="any").restore(lost)


def test_guesses_are_final_only_where_a_judge_knows_them() -> None:
    with pytest.raises(ValueError, match="does not know what a guess is"):
        settings_from(GuessingSettings, {**GUESSING, "judge": "upstream_v1"})
    assert TWENTY_QUESTIONS.under({"guess": "final"}).reward_range == (0, 20)


def test_the_expert_asks_until_one_is_left_where_a_guess_is_final() -> None:
    world = opened()
    for seed in range(20):
        for secret in SECRETS:
            world.reset(secret)
            rows = [world.step(turn.action) for turn in world.expert_steps(secret, seed=seed)]
            assert [row[2] for row in rows] == [*[False] * (len(rows) - 1), True]
            assert rows[-1][1] > 0
    # Of no skill it guesses whatever it was told, once.
    poor = GuessingPlanner(TABLE, SECRETS, skill=0, questions=QUESTIONS, final=True)
    guesses = [TABLE.guess_of(secret) for secret in SECRETS]
    for seed in range(20):
        said = [turn.action for turn in poor.plan(ONE, seed)]
        assert all(action not in guesses for action in said[:-1])


def lefts(secret: str, seed: int) -> list[int]:
    """How many objects are left before each question of a game without luck, by the table."""
    questions = [turn.action for turn in ASKER.plan(secret, seed)]
    left, found = set(SECRETS), list[int]()
    for question in questions:
        found.append(len(left))
        told = TABLE.answer(secret, question)
        left = {one for one in left if TABLE.answer(one, question) == told}
    assert found[-1] == 1
    return found


def law(guesses: float, seed: int = 0) -> dict[tuple[int, bool], float]:
    """Probabilities of a game's reward, and of whether it was won by a guess among several, of
    somebody who guesses so often; by the rules, question for question."""
    found = defaultdict[tuple[int, bool], float](float)
    for secret in SECRETS:
        here = 1 / len(SECRETS)
        for asked, left in enumerate(lefts(secret, seed)):
            tries = guesses if left > 1 else 1.0
            found[QUESTIONS - asked, left > 1] += here * tries / left
            found[0, False] += here * tries * (1 - 1 / left)
            here *= 1 - tries
    return found


def luck_in_the_best(games: dict[tuple[int, bool], float], share: float) -> float:
    """Of the best `share` of all games by reward, the part that luck has won; of the reward at
    which the best end, as much as is left."""
    left, luck = share, 0.0
    for reward in sorted({reward for reward, _ in games}, reverse=True):
        here = sum(p for (each, _), p in games.items() if each == reward)
        if here:
            luck += games.get((reward, True), 0.0) * min(1.0, left / here)
            left -= min(left, here)
    return luck / share


def worth(games: dict[tuple[int, bool], float]) -> float:
    return math.fsum(reward * p for (reward, _), p in games.items())


def test_what_asking_and_guessing_are_worth() -> None:
    """Six games of ten take three questions and a guess, four take four."""
    assert sorted(len(lefts(secret, 0)) for secret in SECRETS) == [4] * 6 + [5] * 4
    assert worth(law(0.0)) == pytest.approx(6.6)
    assert worth(law(1.0)) == pytest.approx(QUESTIONS / 10)
    assert worth(law(0.5)) == pytest.approx(2.1125)
    # Asking first is worth more than a guess even while one goes on guessing half of the time.
    ask_first = 2 * worth(law(0.5)) - worth(law(1.0))
    assert ask_first == pytest.approx(3.225)
    assert all(worth(law(0.5, seed)) == pytest.approx(2.1125) for seed in range(1, 5))


def test_the_best_tenth_of_a_guessers_games_is_luck() -> None:
    """Who imitates the best tenth of such games imitates guesses among five objects and more."""
    games = law(0.5)
    assert math.fsum(games.values()) == pytest.approx(1, abs=1e-12)
    won = math.fsum(p for (reward, _), p in games.items() if reward)
    assert won == pytest.approx(0.2625)
    assert luck_in_the_best(games, 0.1) == pytest.approx(1)
    # Half of the best tenth, the best twentieth, has not asked at all; the rest has asked once.
    # So imitating a tenth leaves the habit as it is, and imitating a twentieth makes it worse.
    assert [games[QUESTIONS - asked, True] for asked in (0, 1)] == pytest.approx([0.05, 0.05])
    assert luck_in_the_best(games, won) == pytest.approx(0.1625 / won)
    # The same of games that the expert plays: 2,000 of them.
    world = opened(expert_guesses=0.5)
    played = defaultdict[tuple[int, bool], float](float)
    for secret in SECRETS:
        for seed in range(200):
            world.reset(secret)
            turns = world.expert_steps(secret, seed=seed)
            rows = [world.step(turn.action) for turn in turns]
            assert [row[2] for row in rows] == [*[False] * (len(rows) - 1), True]
            lucky = turns[-1].thought == "I try my luck."
            played[int(rows[-1][1]), lucky and rows[-1][1] > 0] += 1 / 2000
    for key in games.keys() | played.keys():
        deviation = (games.get(key, 0.0) * (1 - games.get(key, 0.0)) / 2000) ** 0.5
        assert played[key] == pytest.approx(games.get(key, 0.0), abs=5 * deviation + 1e-12), key
    assert luck_in_the_best(played, 0.1) > 0.9


def test_luck_changes_nothing_of_an_expert_that_does_not_try_it() -> None:
    """What was planned before there was luck is planned today; a guess costs a question here."""
    plain, lucky = (
        GuessingPlanner(TABLE, SECRETS),
        GuessingPlanner(TABLE, SECRETS, guesses=0.5),
    )
    guesses = {TABLE.guess_of(secret): secret for secret in SECRETS}
    tried = asked = 0
    for seed in range(50):
        for secret in SECRETS:
            turns = lucky.plan(secret, seed)
            assert turns == lucky.plan(secret, seed)
            assert guesses[turns[-1].action] == secret
            said = [turn.action for turn in turns]
            assert len(set(said)) == len(said)
            tried += sum(turn.thought == "I try my luck." for turn in turns)
            asked += sum(action not in guesses for action in said)
            assert all("luck" not in turn.thought for turn in plain.plan(secret, seed))
    # Each turn with several left is one or the other; five deviations of some 1,500.
    assert tried / (tried + asked) == pytest.approx(0.5, abs=0.07)


def test_a_spec_with_final_guesses_and_the_released_judge_is_refused(tmp_path: Path) -> None:
    text = (ROOT / "specs/archer/tiny.yaml").read_text(encoding="utf-8")
    told = []
    for judge in ("strict_v2", "upstream_v1"):
        spec = tmp_path / f"{judge}.yaml"
        changed = text.replace("objects: subset", f"objects: subset, guess: final, judge: {judge}")
        spec.write_text(changed, "utf-8")
        told.append([each.message for each in compile_spec(spec, {}, load_backends()).diagnostics])
    assert told[0] == []
    assert told[1]
    assert all("knows who wins, and not what a guess is" in each for each in told[1])

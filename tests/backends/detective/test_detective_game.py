"""The real game: what can be gained by playing, what by cheating, and what a hang costs."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from agentc_backends.environments.detective.commands import forbidden, tidy
from agentc_backends.environments.detective.environment import (
    DetectiveEnvironment,
    DetectiveShared,
    wandering,
)
from agentc_backends.environments.detective.game import (
    DetectiveGame,
    Interpreters,
    LegalActionCache,
    Position,
)
from agentc_backends.environments.detective.settings import DETECTIVE, DetectiveSettings
from agentc_backends.environments.server.environment import EnvironmentFailure

pytestmark = pytest.mark.slow
GAINS = {1, 6, 9, 10, 12, 15, 18, 23, 25, 27, 30, *range(32, 39), 40, 42, 44, 45, 46, 48, 49}
"""Steps of jericho's walkthrough that gain ten points; the fiftieth gains a hundred."""
CHEATS = {
    "a hundred points for nothing": (("purloin all", "wait"), 100),
    "by ordering oneself": (("me, purloin all", "wait"), 100),
    "the last room at once": (("goto 88", "look", "up"), 100),
    "three moves in one": (("take paper. north. west",), 20),
    "two moves in one": (("take paper then north",), 10),
}


def played(game: DetectiveGame, commands: Sequence[str]) -> Position:
    position = game.opening
    for command in commands:
        position = game.act(position, command)
    return position


def opened(game: DetectiveGame, **settings: Any) -> DetectiveEnvironment:
    environment = DetectiveEnvironment(
        DetectiveShared(game, DETECTIVE, DetectiveSettings(**settings))
    )
    environment.reset("detective")
    return environment


def test_it_says_how_many_steps_it_allows(game: DetectiveGame) -> None:
    environment = opened(game, max_steps=7)
    assert environment.reset("detective")[1]["step_limit"] == 7
    assert "step_limit" not in environment.step("look")[4]


def test_the_walkthrough_gains_what_it_should(game: DetectiveGame) -> None:
    position, gains = game.opening, []
    for command in game.walkthrough:
        after = game.act(position, tidy(command))
        gains.append(after.score - position.score)
        position = after
    expected = [10 if number in GAINS else 100 if number == 50 else 0 for number in range(1, 52)]
    assert gains == expected
    assert position.over
    assert (position.score, game.points) == (360, 350)


def test_legal_actions_and_first_choices_are_the_known_ones(game: DetectiveGame) -> None:
    """A random player over sorted legal actions, from `random.Random(0)`, starts like this."""
    assert game.legal(game.opening) == ("east", "north", "take paper", "west")
    draw, position, chosen = random.Random(0), game.opening, []
    for _ in range(6):
        chosen.append(draw.choice(game.legal(position)))
        position = game.act(position, chosen[-1])
    assert chosen == ["west", "north", "east", "take paper", "west", "take pistol"]


def test_an_expert_without_skill_plays_at_random(game: DetectiveGame) -> None:
    """Length and gain of such a player's first episode are known, and the world allows all that it
    says."""
    steps = wandering(game, random.Random(0), 50)
    environment = opened(game, max_steps=50)
    told = [environment.step(step.action) for step in steps]
    assert not any(row[4]["refused"] for row in told)
    assert (len(told), sum(row[1] for row in told)) == (50, 30)
    unskilled = opened(game, max_steps=2, expert_skill=0.0)
    plans = [unskilled.expert_steps("detective", seed=seed) for seed in range(4)]
    assert len(set(plans)) > 1
    assert {len(plan) for plan in plans} <= {1, 2}
    assert plans[1] == unskilled.expert_steps("detective", seed=1)


@pytest.mark.long
def test_an_expert_of_some_skill_plays_both(game: DetectiveGame) -> None:
    halves = opened(game, max_steps=2, expert_skill=0.5)
    lengths = [len(halves.expert_steps("detective", seed=seed)) for seed in range(20)]
    follows = len(opened(game).expert_steps("detective"))
    assert follows > 40
    assert 3 <= lengths.count(follows) <= 17
    assert {*lengths} - {1, 2} == {follows}


def test_states_that_differ_in_time_and_words_alone_have_one_key(game: DetectiveGame) -> None:
    """And the same legal actions, found for each without the other."""
    direct = played(game, ["west"])
    later = played(game, ["wait", "read paper", "frob the paper", "inventory", "west"])
    assert direct.state != later.state
    assert direct.key == later.key
    assert game.computed_legal(direct) == game.computed_legal(later)
    assert played(game, ["take paper", "west"]).key != direct.key


@pytest.mark.parametrize("name", CHEATS)
def test_a_cheat_works_in_the_bare_game_and_is_refused_here(game: DetectiveGame, name: str) -> None:
    commands, gain = CHEATS[name]
    assert played(game, commands).score - game.opening.score == gain
    assert any(forbidden(command, game.meta, game.letters) for command in commands)
    for actions in ("free", "legal"):
        environment = opened(game, actions=actions)
        trick = next(c for c in commands if forbidden(c, game.meta, game.letters))
        observation, reward, over, cut, info = environment.step(trick)
        assert (reward, over, cut) == (0, False, False)
        assert (info["refused"], info["exploits"], info["score"]) == (1, 1, 10)
        assert environment.counts() == {"refused": 1, "exploits": 1}
        assert observation.endswith("['east', 'north', 'take paper', 'west']")


def test_to_nothing_at_all_the_game_itself_answers(game: DetectiveGame) -> None:
    told = played(game, [""]).text
    assert told
    environment = opened(game, actions="free")
    observation, _, over, _, info = environment.step(" \n")
    assert told in observation
    assert (over, info["refused"]) == (False, 0)
    assert opened(game, actions="legal").step("")[4]["refused"] == 1


def test_the_last_room_ends_the_bare_game_in_three_commands(game: DetectiveGame) -> None:
    assert played(game, CHEATS["the last room at once"][0]).over


def test_a_menu_swallows_what_follows_and_is_refused(game: DetectiveGame) -> None:
    assert "Outside" in played(game, ["north"]).text
    assert "Outside" not in played(game, ["help", "north"]).text
    environment = opened(game, actions="free")
    for command in ("help", "info", "about", "restart", "quit", "save", "script", "recording on"):
        assert environment.step(command)[4]["score"] == 10
    assert environment.counts() == {"refused": 8, "exploits": 8}


@pytest.mark.parametrize("command", ["showverb eight", "goto 90"])
def test_a_hang_voids_its_request_and_nothing_else(impatient: Interpreters, command: str) -> None:
    game = DetectiveGame(impatient, LegalActionCache(None))
    assert forbidden(command, game.meta, game.letters)
    before = set(impatient.pids)
    with ThreadPoolExecutor(2) as pool:
        hung = pool.submit(game.act, game.opening, command)
        # Beside it an episode goes on; its state is in no process.
        beside = opened(game)
        rewards = [beside.step(action)[1] for action in ("take paper", "west", "take pistol")]
        with pytest.raises(EnvironmentFailure, match="gave no answer"):
            hung.result()
    assert rewards == [10, 0, 10]
    assert len(before - set(impatient.pids)) == 1
    assert beside.step("east")[4]["score"] == 30


def test_an_interpreter_that_is_killed_is_replaced(
    game: DetectiveGame, interpreters: Interpreters
) -> None:
    for pid in interpreters.pids:
        os.kill(pid, signal.SIGKILL)
    failures = 0
    for _ in range(4):
        try:
            assert game.act(game.opening, "take paper").score == 20
        except EnvironmentFailure:
            failures += 1
    assert 1 <= failures <= 2


def test_actions_outside_of_the_list_are_refused_and_counted(game: DetectiveGame) -> None:
    environment = opened(game, max_steps=4)
    observation, reward, over, cut, info = environment.step("dance with the chief")
    assert "not among the actions" in observation
    assert (reward, over, cut, info["refused"], info["exploits"]) == (0, False, False, 1, 0)
    assert environment.step("Take  PAPER\nnorth")[1] == 10
    assert environment.step("W")[4]["refused"] == 1
    assert environment.step("take pistol")[2:4] == (False, True)
    assert environment.step("east")[:4] == ("The episode is over.", 0.0, True, False)


def test_free_words_reach_the_parser(game: DetectiveGame) -> None:
    environment = opened(game, actions="free")
    assert "murdered" in environment.step("read the paper")[0]
    assert environment.step("take it")[1] == 10
    assert environment.counts() == {"refused": 0, "exploits": 0}


def test_a_damaged_snapshot_is_refused_and_changes_nothing(game: DetectiveGame) -> None:
    environment = opened(game)
    environment.step("take paper")
    whole = environment.snapshot()
    cut = whole["state"][: len(whole["state"]) // 8 * 4]
    for damage in (
        {"state": cut},
        {"state": "%"},
        {"state_sha256": "0" * 64},
        {"game": "0" * 64},
        {"counts": [0, 1, 0]},
        {"done": True},
    ):
        with pytest.raises(ValueError, match=r"snapshot|state"):
            environment.restore({**whole, **damage})
    environment.step("west")
    environment.restore(whole)
    assert environment.snapshot() == whole

"""ALFWorld's rules and texts: invented games, and the benchmark's own where their data is."""

from __future__ import annotations

import json
import random
from functools import lru_cache
from pathlib import Path

import pytest

from agentc_backends.environments.alfworld.expert import plan, recorded
from agentc_backends.environments.alfworld.games import (
    GameError,
    HouseholdGame,
    make_game,
    part_file,
    read_games,
)
from agentc_backends.environments.alfworld.invented import invented_games, playable
from agentc_backends.environments.alfworld.job_pack import main as pack
from agentc_backends.environments.alfworld.play import MOVE, PUT, Play, Wording, is_reached
from agentc_backends.environments.alfworld.settings import PARTS, ROOMS, TASKS
from agentc_backends.environments.server.world import ExpertAction

DATA = Path(__file__).parents[4] / "shared" / "data" / "alfworld"
SIZES = {"train": 3553, "valid_train": 200, "valid_seen": 140, "valid_unseen": 134}
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="ALFWorld's games are not here")


@lru_cache(maxsize=1)
def released(part: str) -> tuple[HouseholdGame, ...]:
    file = part_file(DATA, part)
    return tuple(read_games(file.read_bytes(), file.name))


def wins(game: HouseholdGame, wording: Wording, steps: tuple[ExpertAction, ...]) -> bool:
    """Whether the steps are all legal and end with the goal, no sooner."""
    play = Play(game.house(), wording)
    reached = [is_reached(play)]
    for step in steps:
        _, legal = play.act(step.action)
        assert legal, (game.task_id, step.action)
        reached.append(is_reached(play))
    return reached == [False] * len(steps) + [True]


@needs_data
@pytest.mark.parametrize("wording", [PUT, MOVE], ids=["put", "move"])
def test_the_walkthroughs_of_unseen_games_win(wording: Wording) -> None:
    for game in released("valid_unseen"):
        assert wins(game, wording, recorded(game.house(), game.walkthrough, wording)), game.task_id


@needs_data
@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_every_walkthrough_wins_and_the_explorer_finds_everything(part: str) -> None:
    games = released(part)
    assert len(games) == SIZES[part]
    for game in games:
        play = Play(game.house(), MOVE)
        for action in game.walkthrough:
            play.act(action)
        assert is_reached(play), game.task_id
        for steps in (
            recorded(game.house(), game.walkthrough, PUT),
            plan(game.house(), PUT, knows_all=False),
        ):
            assert wins(game, PUT, steps), game.task_id


@needs_data
def test_a_released_game_tells_what_alfworld_tells() -> None:
    game = next(g for g in released("valid_unseen") if g.trial == "trial_T20190909_210238_431966")
    play = Play(game.house(), MOVE)
    opening = play.opening()
    assert opening.startswith("You are in the middle of a room. Looking quickly around you, you ")
    assert "a desk 2, a desk 1, " in opening
    assert game.description == "Your task is to: put a mug in desk."
    assert play.act("look")[0].endswith("you see nothing.")
    assert play.act("go to mars")[0] == "Nothing happens."
    old = Play(game.house(), PUT)
    assert play.act("go to shelf 2")[0].startswith("You arrive at shelf 2. On the shelf 2, you see")
    assert old.act("go to shelf 2")[0].startswith("You arrive at loc ")
    taken = "You pick up the mug 1 from the shelf 2."
    assert play.act("take mug 1 from shelf 2")[0] == old.act("take mug 1 from shelf 2")[0] == taken
    for each in (play, old):
        each.act("go to desk 2")
    assert play.act("put mug 1 in/on desk 2")[1] is False
    assert play.act("move mug 1 to desk 2")[0] == "You move the mug 1 to the desk 2."
    assert old.act("move mug 1 to desk 2")[1] is False
    assert old.act("put mug 1 in/on desk 2")[0] == "You put the mug 1 in/on the desk 2."
    assert is_reached(play)
    assert is_reached(old)


@needs_data
def test_a_pan_that_the_game_puts_into_itself_is_not_seen_there() -> None:
    game = next(g for g in released("train") if g.trial == "trial_T20190918_234000_303529")
    play = Play(game.house(), MOVE)
    play.act("go to countertop 2")
    play.act("take pan 1 from countertop 2")
    assert play.act("examine pan 1")[0] == "This is a normal pan 1. In it, you see nothing."


@pytest.mark.parametrize("knows_all", [True, False], ids=["omniscient", "explorer"])
@pytest.mark.parametrize("part", PARTS)
def test_experts_win_every_invented_game(part: str, knows_all: bool) -> None:
    for game in invented_games(part, 120, 0):
        assert wins(game, PUT, plan(game.house(), PUT, knows_all=knows_all)), game.task_id


def test_the_explorer_takes_only_what_it_has_seen() -> None:
    for game in invented_games("train", 150, 3):
        play = Play(game.house(), PUT)
        told = ""
        for step in plan(game.house(), PUT, knows_all=False):
            if step.action.startswith("take "):
                assert f"a {step.action[5:].partition(' from ')[0]}" in told
            if step.action.startswith("use "):
                assert f"a {step.action[4:]}" in told
            told += play.act(step.action)[0]


def test_invented_games_are_of_all_kinds_and_the_same_for_a_seed() -> None:
    games = invented_games("train", 200, 5)
    kinds = {game.task_id.split("-")[0] for game in games}
    assert len(kinds) == 6
    assert invented_games("train", 20, 5) == games[:20]
    assert invented_games("train", 20, 6) != games[:20]
    rooms = {
        part: {
            game.task_id.split("/")[0].rpartition("-")[2] for game in invented_games(part, 90, 5)
        }
        for part in PARTS
    }
    assert rooms["valid_seen"] <= {game.task_id.split("/")[0].rpartition("-")[2] for game in games}
    assert not rooms["valid_unseen"] & (rooms["train"] | rooms["valid_seen"])


def test_rooms_and_kinds_of_task_can_be_chosen() -> None:
    games = invented_games("train", 60, 0, ("bathroom",), ("clean", "put"))
    kinds = {game.task_id.partition("-")[0] for game in games}
    assert kinds == {"pick_and_place_simple", "pick_clean_then_place_in_recep"}
    for game in games:
        types = {*game.house().receptacle_types.values()}
        assert "toilettype" in types
        assert wins(game, PUT, plan(game.house(), PUT, knows_all=False))
    # All of them, in any order, are the games of a spec that names none.
    assert invented_games("train", 30, 0, ROOMS[::-1], TASKS[::-1]) == invented_games(
        "train", 30, 0
    )


def test_tasks_go_with_rooms_that_have_what_they_take() -> None:
    found = {(room, kind) for room in ROOMS for kind in TASKS if playable((room,), (kind,))}
    assert {kind for _, kind in found} == {*TASKS}
    assert {room for room, kind in found if kind == "heat"} == {"kitchen"}
    assert {room for room, kind in found if kind == "look"} == {"bedroom", "livingroom"}
    for room, kind in found:
        assert len(invented_games("valid_unseen", 2, 0, (room,), (kind,))) == 2


def test_every_legal_command_is_carried_out_and_keeps_things_where_they_can_be() -> None:
    draw = random.Random(1)
    for game in invented_games("valid_unseen", 15, 1):
        play = Play(game.house(), MOVE)
        things = sorted(thing for held in play.contents.values() for thing in held)
        for _ in range(60):
            command = draw.choice(sorted(play.legal()))
            observation, legal = play.act(command)
            assert legal
            assert observation != "Nothing happens."
            now = [thing for held in play.contents.values() for thing in held]
            assert sorted([*now, *([play.held] if play.held else [])]) == things


def test_a_thing_on_two_burners_is_done_as_soon_as_it_is_clean() -> None:
    # In a third of ALFWorld's games something is in two receptacles at once.
    burners = "".join(
        f"(receptacleType StoveBurner_bar_{n} StoveBurnerType)"
        f"(receptacleAtLocation StoveBurner_bar_{n} loc_bar_{n})(inReceptacle Pan_bar_1 "
        f"StoveBurner_bar_{n})(objectAtLocation Pan_bar_1 loc_bar_{n})"
        for n in (1, 2)
    )
    problem = f"""(:init (atLocation agent1 loc_bar_0) {burners}
      (receptacleType Sink_bar_1_SinkBasin SinkBasinType)
      (receptacleAtLocation Sink_bar_1_SinkBasin loc_bar_3) (objectType Pan_bar_1 PanType)
      (pickupable Pan_bar_1) (cleanable Pan_bar_1) (canContain StoveBurnerType PanType))
      (:goal (exists (?r - receptacle ?o - object) (and (cleanable ?o) (objectType ?o PanType)
      (receptacleType ?r StoveBurnerType) (isClean ?o) (inReceptacle ?o ?r))))"""
    walkthrough = ["go to stoveburner 1", "take pan 1 from stoveburner 1", "go to sinkbasin 1"]
    walkthrough += ["clean pan 1 with sinkbasin 1", "go to stoveburner 1",
                    "move pan 1 to stoveburner 1"]  # fmt: skip
    game = make_game("t", "trial_1", "", problem, walkthrough)
    told = recorded(game.house(), game.walkthrough, PUT)
    assert wins(game, PUT, told)
    assert [step.action for step in told] == walkthrough[:4]
    for knows_all in (True, False):
        found = plan(game.house(), PUT, knows_all=knows_all)
        assert wins(game, PUT, found)
        assert found[-1].action == "clean pan 1 with sinkbasin 1"


def test_only_treated_things_count_and_heat_undoes_cold() -> None:
    problem = """(:init (atLocation agent1 loc_bar_0)
      (receptacleType Fridge_bar_1 FridgeType) (receptacleAtLocation Fridge_bar_1 loc_bar_1)
      (openable Fridge_bar_1)
      (receptacleType Microwave_bar_1 MicrowaveType)
      (receptacleAtLocation Microwave_bar_1 loc_bar_2) (openable Microwave_bar_1)
      (receptacleType Shelf_bar_1 ShelfType) (receptacleAtLocation Shelf_bar_1 loc_bar_2)
      (objectType Apple_bar_1 AppleType) (inReceptacle Apple_bar_1 Shelf_bar_1)
      (objectAtLocation Apple_bar_1 loc_bar_2) (pickupable Apple_bar_1)
      (heatable Apple_bar_1) (coolable Apple_bar_1) (canContain ShelfType AppleType))
      (:goal (exists (?r - receptacle ?o - object) (and (coolable ?o) (objectType ?o AppleType)
      (receptacleType ?r ShelfType) (isCool ?o) (inReceptacle ?o ?r))))"""
    play = Play(make_game("t", "trial_1", "", problem).house(), PUT)

    def tell(*commands: str) -> list[str]:
        return [play.act(command)[0] for command in commands]

    tell(
        "go to shelf 1", "take apple 1 from shelf 1", "go to fridge 1", "cool apple 1 with fridge 1"
    )
    assert tell("examine apple 1") == ["This is a cold apple 1."]
    tell("go to shelf 1", "heat apple 1 with microwave 1", "put apple 1 in/on shelf 1")
    assert not is_reached(play)
    assert tell("look") == [
        "You are facing the microwave 1, and shelf 1. Next to it, you see nothing."
    ]
    assert tell("put apple 1 in/on shelf 1", "examine fridge 1") == ["Nothing happens."] * 2
    tell("take apple 1 from shelf 1", "go to fridge 1", "cool apple 1 with fridge 1")
    assert tell("open fridge 1", "open fridge 1") == [
        "You open the fridge 1. The fridge 1 is open. In it, you see nothing.",
        "Nothing happens.",
    ]
    tell("go to shelf 1", "put apple 1 in/on shelf 1")
    assert is_reached(play)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "no packed file"),
        (b"[]\n", "line 1 of x.jsonl lacks"),
        (b'{"task": "t", "trial": "trial_1", "task_desc": "d"}', "lacks"),
    ],
)
def test_broken_files_are_refused(content: bytes, message: str) -> None:
    with pytest.raises(GameError, match=message):
        list(read_games(content, "x.jsonl"))
    with pytest.raises(GameError):
        list(read_games(content, "x.jsonl.xz"))


@pytest.mark.parametrize(
    "problem",
    ["", "(:init (atLocation a l))", "(:init ) (:goal (and))",
     "(:init (atLocation a)) (:goal (objectType ?o XType) (receptacleType ?r YType))"],
)  # fmt: skip
def test_broken_problems_are_refused(problem: str) -> None:
    with pytest.raises(GameError):
        make_game("t", "trial_1", "d", problem).house()


def test_a_folder_of_games_is_packed(tmp_path: Path) -> None:
    words = "{\\n 'rhs': \\\"Your task is to: look at mug.\\\" }"
    problem = (
        "(:init (atLocation a l))\n(:goal (objectType ?o XType) (receptacleType ?r YType))"
    )  # fmt: skip
    for number, solvable in ((2, True), (1, True), (3, False)):
        place = tmp_path / "json" / "valid_seen" / "put-X" / f"trial_{number}"
        place.mkdir(parents=True)
        game = {
            "pddl_problem": problem,
            "grammar": words,
            "walkthrough": ["look"],
            "solvable": solvable,
        }
        (place / "game.tw-pddl").write_text(json.dumps(game))
    assert pack([str(tmp_path / "json"), str(tmp_path / "out")]) == 0
    file = part_file(tmp_path / "out", "valid_seen")
    games = list(read_games(file.read_bytes(), file.name))
    assert [game.task_id for game in games] == ["put-X/trial_1", "put-X/trial_2"]
    assert games[0].description == "Your task is to: look at mug."
    assert pack([str(tmp_path / "nothing"), str(tmp_path / "out")]) == 1

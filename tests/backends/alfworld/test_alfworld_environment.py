"""ALFWorld as an environment: splits, lists, options, snapshots, and its declaration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentc.backend_api import OptionView
from agentc.program.settings import settings_from
from agentc_backends.environments.alfworld.backend import BACKEND
from agentc_backends.environments.alfworld.environment import AlfworldEnvironment
from agentc_backends.environments.alfworld.job_serve import load_tasks, main
from agentc_backends.environments.alfworld.settings import DEFAULT, AlfworldSettings
from agentc_backends.environments.server.splits import SplitError

SHARED = Path(__file__).parents[4] / "shared" / "data"
needs_data = pytest.mark.skipif(
    not (SHARED / "alfworld").is_dir(), reason="ALFWorld's games are not here"
)


def opened(splits: Any = DEFAULT, games: str = "invented", **options: Any) -> AlfworldEnvironment:
    given = {"games": games, "splits": splits, "invented_games": 30, **options}
    settings = AlfworldSettings(**given)
    return AlfworldEnvironment(load_tasks(settings), settings)


def test_an_episode_rewards_its_goal_once() -> None:
    environment = opened()
    task = environment.tasks("dev")[0]
    opening, _ = environment.reset(task)
    assert opening.startswith("You are in the middle of a room.")
    assert "\n\nYour task is to: " in opening
    rewards = []
    for step in environment.expert_steps(task):
        observation, reward, done, truncated, _ = environment.step(step.action)
        assert not observation.startswith("You arrive")
        assert step.thought
        assert not truncated
        rewards.append(reward)
    assert rewards == [0.0] * (len(rewards) - 1) + [1.0]
    assert done
    assert environment.step("look")[1:3] == (0.0, True)


@pytest.mark.parametrize("expert", ["explorer", "walkthrough"])
@pytest.mark.parametrize("wording", ["put", "move"])
def test_experts_speak_the_wording(wording: str, expert: str) -> None:
    environment = opened(wording=wording, expert=expert, shorten_arrivals=False)
    for task in environment.tasks("train"):
        environment.reset(task)
        for step in environment.expert_steps(task):
            observation, _, done, _, _ = environment.step(step.action)
            assert step.action.startswith("go to ") == observation.startswith("You arrive at ")
            assert not step.action.startswith({"put": "move ", "move": "put "}[wording])
        assert done


@pytest.mark.parametrize(
    "change",
    [
        {"task_id": "no/trial"},
        {"actions": ["fly"]},
        {"actions": [1]},
        {"done": True},
        {"version": 2},
    ],
)
def test_a_malformed_snapshot_changes_nothing(change: dict[str, Any]) -> None:
    environment = opened()
    environment.reset(environment.tasks("test")[0])
    snapshot = environment.snapshot()
    with pytest.raises(ValueError, match="snapshot"):
        environment.restore({**snapshot, **change})
    assert environment.snapshot() == snapshot


def test_the_first_tasks_of_a_split_are_of_many_kinds() -> None:
    tasks = opened(invented_games=200).tasks("train")
    assert len({task.split("-")[0] for task in tasks[:40]}) == 6


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        ({}, "no split"),
        ({"train": {"part": "trian"}}, "expected `{part"),
        ({"train": {"part": "train", "lists": "x"}}, "expected `{part"),
        ({"a": {"part": "train"}, "b": {"part": "train"}}, "share all"),
        ({"a": {"part": "train"}, "b": {"part": "train", "except": ["a"]}}, "holds no game"),
        ({"a": {"part": "train", "except": ["c"]}}, "names no other split"),
        ({"a": {"part": "train", "list": "nowhere.txt"}}, "no file nowhere.txt"),
        ({"a": {"part": "train", "missing": "keep"}}, "can only be `drop`"),
    ],
)
def test_wrong_splits_are_refused(splits: Any, message: str) -> None:
    with pytest.raises(SplitError, match=message):
        opened(splits)


def test_lists_choose_games_in_their_order(tmp_path: Path) -> None:
    ids = [task.rpartition("/")[2] for task in opened().tasks("train")]
    (tmp_path / "list.json").write_text(json.dumps([{"task_id": ids[4]}, {"task_id": ids[2]}]))
    (tmp_path / "more.txt").write_text(f"{ids[2]}\ntrial_unknown\n")
    listed = {"part": "train", "list": str(tmp_path / "list.json")}
    more = {"part": "train", "list": str(tmp_path / "more.txt")}
    rest = {"part": "train", "except": "a"}
    environment = opened({"a": listed, "b": rest})
    assert [t.rpartition("/")[2] for t in environment.tasks("a")] == [ids[4], ids[2]]
    assert len(environment.tasks("b")) == 28
    with pytest.raises(SplitError, match="share 1 of"):
        opened({"a": listed, "b": more})
    with pytest.raises(SplitError, match="lists 1 games that train has not"):
        opened({"b": more})
    assert len(opened({"b": {**more, "missing": "drop"}}).tasks("b")) == 1


@needs_data
def test_the_lists_of_eto_and_agentgym_name_released_games() -> None:
    folder = str(SHARED / "alfworld")
    published = SHARED / "splits"
    eto = {"part": "valid_unseen", "list": str(published / "eto_alfworld_gamefile_id.txt")}
    gym = {"part": "valid_train",
           "list": str(published / "agentgym_alfworld_mappings_test.json")}  # fmt: skip
    environment = opened({"eto": eto, "gym": gym, "dev": {"part": "valid_seen"}}, folder)
    counts = [len(environment.tasks(name)) for name in ("eto", "gym", "dev")]
    assert counts == [134, 200, 140]
    first = (published / "eto_alfworld_gamefile_id.txt").read_text().split()[0]
    assert environment.tasks("eto")[0] == first
    assert set(environment.identity()["files"]) == {"valid_unseen", "valid_train", "valid_seen"}


def leased(files: dict[str, bytes], **values: Any) -> tuple[Any, OptionView]:
    view = OptionView(table=BACKEND.fields, values=values, files=files.get)
    return BACKEND.lease(view), view


def test_keys_follow_what_the_files_hold_and_not_where_they_are() -> None:
    def at(folder: str, content: bytes) -> dict[str, bytes]:
        return {f"{folder}/{part['part']}.jsonl.xz": content for part in DEFAULT.values()}

    one, _ = leased(at("a", b"1"), games="a")
    moved, _ = leased(at("b", b"1"), games="b")
    other, _ = leased(at("b", b"2"), games="b")
    assert one.identity == moved.identity != other.identity
    assert one.expect != other.expect
    _, view = leased({}, games="c")
    assert {refusal.path for refusal in view.refusals} == {"games"}


def test_what_a_plan_expects_is_what_there_is() -> None:
    lease, _ = leased({}, invented_games=60)
    environment = opened(invented_games=60)
    assert BACKEND.expected_tasks(lease.identity) == {
        name: (float(len(environment.tasks(name))), 1.0) for name in DEFAULT
    }
    told = environment.identity()
    assert {name: told[name] for name in lease.expect} == lease.expect


def test_an_idle_action_ends_an_episode_where_asked_to() -> None:
    environment = opened(invented_games=4, end_on_refusal=True)
    task = environment.tasks("train")[0]
    environment.reset(task)
    steps = environment.expert_steps(task)
    assert environment.step(steps[0].action)[1:3] == (0.0, False)
    assert environment.step("fly away")[:3] == ("Nothing happens.", 0.0, True)
    other = opened(invented_games=4, end_on_refusal=True)
    other.restore(environment.snapshot())
    for each in (environment, other):
        # The end is the end: playing on wins nothing.
        assert {each.step(step.action)[1:3] for step in steps[1:]} == {(0.0, True)}
    environment.reset(task)
    assert [environment.step(step.action)[1:3] for step in steps][-1] == (1.0, True)
    patient = opened(invented_games=4)
    patient.reset(task)
    assert patient.step("fly away")[:3] == ("Nothing happens.", 0.0, False)
    with pytest.raises(ValueError, match="do not lead to its state"):
        patient.restore({**other.snapshot(), "actions": []})


def test_rooms_and_kinds_of_task_reach_the_server() -> None:
    lease, view = leased({}, invented_games=9, invented_rooms=["bathroom"], invented_tasks=["put"])
    assert not view.refusals
    assert lease.identity["invented_rooms"] == ["bathroom"]
    given = settings_from(AlfworldSettings, lease.settings)
    assert (given.invented_rooms, given.invented_tasks) == (("bathroom",), ("put",))
    plain, _ = leased({}, invented_games=9)
    assert not {"invented_rooms", "invented_tasks"} & plain.identity.keys()


@pytest.mark.parametrize(
    ("values", "path", "says"),
    [
        ({"invented_rooms": ["kitchens"]}, "invented_rooms", "kitchen?"),
        ({"invented_tasks": ["fly"]}, "invented_tasks", "choose from put"),
        (
            {"invented_rooms": ["bathroom"], "invented_tasks": ["heat"]},
            "invented_tasks",
            "can be done in all of them",
        ),
    ],
)
def test_rooms_and_tasks_that_give_no_games_are_refused(
    values: dict[str, Any], path: str, says: str
) -> None:
    _, view = leased({}, **values)
    (refusal,) = view.refusals
    assert refusal.path == path
    assert says in str(refusal.fix)


def test_a_server_without_its_games_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--games", "nowhere"]) == 2
    assert "there is no train.jsonl.xz in nowhere" in capsys.readouterr().err

"""Splits are disjoint by task and variation, whatever they are written as."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentc.backend_api import OptionView
from agentc_backends.environments.sciworld.backend import BACKEND
from agentc_backends.environments.sciworld.settings import (
    DEFAULT,
    from_line,
    in_a_line,
    read_splits,
    size,
    task_ids,
)
from agentc_backends.environments.sciworld.tasks import (
    LISTS,
    TASKS,
    simulator_split,
    split_task_id,
    task_named,
)
from agentc_backends.environments.server.splits import SplitError

SHARED = Path(os.environ.get("AGENTC_SHARED", Path(__file__).parents[4] / "shared")) / "data"


def nothing(path: str) -> bytes | None:
    return None


def files(**content: object) -> Callable[[str], bytes | None]:
    texts = {name: json.dumps(value).encode() for name, value in content.items()}
    return texts.get


def read(written: dict[str, Any], *only: str, **content: object) -> dict[str, dict[str, str]]:
    return read_splits(written, only, files(**content))


def test_own_splits_hold_every_variation_once() -> None:
    found = read(dict(DEFAULT))
    assert {name: size(text) for name, text in found.items()} == {
        "train": 3592, "dev": 1796, "test": 1819
    }  # fmt: skip
    everything = [task for text in found.values() for task in task_ids(text)]
    assert len(everything) == len(set(everything)) == sum(task.variations for task in TASKS)


def test_tasks_stand_in_the_benchmarks_order_however_the_splits_are_carried() -> None:
    text = read(dict(DEFAULT))["dev"]
    assert task_ids(dict(sorted(text.items()))) == task_ids(text)


def test_small_tasks_are_divided_as_the_simulator_does() -> None:
    stages = task_named("8-2")
    assert stages is not None
    # 10 variations: quarters of 2, and the two that are left over are tested on.
    assert [list(simulator_split(stages, name)) for name in ("train", "dev", "test")] == [
        [0, 1, 2, 3], [4, 5], [6, 7, 8, 9]
    ]  # fmt: skip


def test_a_leak_is_refused_with_the_way_to_mend_it() -> None:
    eto: dict[str, Any] = {name: {"list": "eto"} for name in ("train", "dev", "test")}
    with pytest.raises(SplitError, match=r"share 54 variations.*`except: \[train\]` in `dev`"):
        read(eto)
    eto["dev"]["except"] = ["train"]
    assert {name: size(text) for name, text in read(eto).items()} == {
        "train": 1483, "dev": 140, "test": 211
    }  # fmt: skip


def test_a_list_beside_the_simulators_own_split_leaks_too() -> None:
    with pytest.raises(SplitError, match="share 357 variations"):
        read({"train": {"list": "eto"}, "dev": {"own": "dev"}})


def test_what_agent_r_collects_on_overlaps_what_it_tests_on() -> None:
    collected: dict[str, Any] = {"train": {"list": "agent_r"}, "test": {"list": "agent_r"}}
    with pytest.raises(SplitError, match="share 2 variations"):
        read(collected)
    collected["train"]["except"] = ["test"]
    assert size(read(collected)["train"]) == 23 * 9 - 2


def test_agent_r_tests_on_the_simulators_own_test_split() -> None:
    for task, variation in map(split_task_id, task_ids(dict(LISTS["agent_r"]["test"]))):  # type: ignore[misc]
        assert variation in simulator_split(task, "test")


@pytest.mark.parametrize(
    ("file", "form", "name", "split"),
    [
        ("sciworld/eto_train_indices.json", "eto", "eto", "train"),
        ("sciworld/eto_dev_indices.json", "eto", "eto", "dev"),
        ("sciworld/eto_test_indices.json", "eto", "eto", "test"),
        ("splits/agentr_sciworld_test.json", "agentgym_without_2_3", "agent_r", "test"),
    ],
)
def test_lists_are_those_of_the_published_files(
    file: str, form: str, name: str, split: str
) -> None:
    if not (SHARED / file).exists():
        pytest.skip(f"no {file} under {SHARED}; set AGENTC_SHARED")

    def content(path: str) -> bytes:
        return (SHARED / path).read_bytes()

    from_file = read_splits({split: {"file": file, "format": form}}, (), content)
    assert from_file == read({split: {"list": name}})


def test_indices_of_agentgyms_server_count_one_task_more() -> None:
    numbered = {"test": {"file": "list", "format": "agentgym"}}
    assert read(numbered, list=["sciworld_3491"]) == {"test": {"find-non-living-thing": "255"}}
    numbered["test"]["format"] = "agentgym_without_2_3"
    assert read(numbered, list=[{"item_id": "sciworld_3491"}]) != read(
        {"test": {"variations": {"4-2": 255}}}
    )


def test_old_names_and_numbers_mean_the_same_task() -> None:
    pairs = [["task-10-measure-melting-point-(known-substance)", 4], ["2-2", 5]]
    found = read({"train": {"file": "pairs", "format": "eto"}}, pairs=pairs)
    assert found == {"train": {"measure-melting-point-known-substance": "4-5"}}


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ({}, "no split is given"),
        ({"test": {"own": "trian"}}, "expected `{own: train|dev|test}`"),
        ({"dev": {"list": "agent_r"}}, "has no split `dev`; it has train, test"),
        ({"a": {"variations": {"boil": "0-30"}}}, "boil has variations 0 to 29"),
        ({"a": {"variations": {"bake": "0"}}}, "has no task 'bake'; it has boil"),
        ({"a": {"variations": {"boil": "x"}}}, "write `0-13,20`"),
        ({"a": {"variations": {"boil": "1,1"}}}, "holds boil:1 twice"),
        ({"a": {"own": "dev", "excpet": ["b"]}}, "unknown key `excpet`"),
        ({"a": {"own": "dev", "except": ["b"]}}, "names no other split: b"),
        ({"a": {"file": "gone", "format": "eto"}}, "no file gone"),
        ({"a": {"file": "words", "format": "eto"}}, "is not \\[task, variation\\]"),
        ({"a": {"file": "words", "format": "agentgym"}}, "is no index below 4639"),
        ({"a": {"file": "number", "format": "eto"}}, "number is no list"),
    ],
)
def test_what_is_wrong_is_said(written: dict[str, Any], message: str) -> None:
    with pytest.raises(SplitError, match=message):
        read(written, words=["x"], number=3)


def test_tasks_are_kept_by_name_and_a_split_without_any_is_refused() -> None:
    assert read({"a": {"own": "dev"}}, "8-2", "boil") == {
        "a": {"boil": "14-20", "identify-life-stages-2": "4-5"}
    }
    with pytest.raises(SplitError, match="holds no task"):
        read({"a": {"variations": {"boil": "1"}}}, "melt")


def test_the_first_tasks_of_a_split_are_of_many_kinds() -> None:
    first = task_ids(read(dict(DEFAULT))["train"])[: len(TASKS)]
    assert [task.partition(":")[0] for task in first] == [task.name for task in TASKS]


def test_a_line_is_read_back() -> None:
    for text in read(dict(DEFAULT)).values():
        assert from_line(in_a_line(text)) == text


def lease(**values: Any) -> tuple[Any, list[str]]:
    view = OptionView(table=BACKEND.fields, values=values, files=nothing)
    return BACKEND.lease(view), [refusal.reason for refusal in view.refusals]


def test_keys_follow_the_variations_however_they_are_written() -> None:
    ranges = {"boil": "0-13"}
    one, _ = lease(splits={"train": {"variations": ranges}})
    other, _ = lease(splits={"train": {"list": "eto"}}, tasks=["boil"])
    assert one.identity == other.identity
    third, _ = lease(splits={"train": {"variations": {"boil": "0-12"}}})
    assert third.identity != one.identity
    placed, _ = lease(splits={"train": {"variations": ranges}}, processes=3, heap_mb=256)
    assert (placed.identity, placed.settings != one.settings) == (one.identity, True)


def test_impossible_simplifications_are_refused() -> None:
    assert lease(simplifications=["openDoor"])[1] == [
        "ScienceWorld has no simplification 'openDoor'"
    ]
    assert "takes no other one beside it" in lease(simplifications=["easy", "openDoors"])[1][0]
    assert "without electrical actions" in lease(simplifications=["noElectricalAction"])[1][0]
    assert lease(simplifications=["noElectricalAction"], tasks=["boil"])[1] == []


def test_the_declaration_follows_the_settings() -> None:
    zero = BACKEND.under({"negative": "zero", "step_limit": "uniform", "splits": {"a": {}}})
    assert (zero.reward_range, zero.max_turns, zero.splits) == ((0.0, 1.0), 100, ("a",))
    plain = BACKEND.under({})
    assert (plain.reward_range, plain.max_turns) == ((-1.0, 1.0), 120)

"""Splits by number: ranges, lists, the family's published files, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentc_backends.environments.external.task_lists import read_splits
from agentc_backends.environments.server.splits import SplitError, fold_numbers, unfold_numbers

PUBLISHED = Path(__file__).parents[4] / "shared" / "data" / "splits"

FILES = {
    "items.json": b'[{"item_id": "textcraft_31"}, {"item_id": "textcraft_7"}]',
    "turns.json": b'{"31": 7, "32": 6}',
    "ids.txt": b"5\n3\nsciworld_9\n",
    "goals.json": b'["craft a stick"]',
    "broken.json": b"[1,",
    "deep.json": b"[" * 100_000,
    "long.txt": b"7" * 5000,
}


def splits(**written: Any) -> dict[str, tuple[int, ...]]:
    return read_splits(written, FILES.get, 544)


def test_the_ways_to_write_a_split() -> None:
    found = splits(
        train={"range": [40, 44]},
        items={"file": "items.json"},
        more={"file": "ids.txt"},
        few={"ids": [1, 0]},
    )
    assert found == {"train": (40, 41, 42, 43), "items": (31, 7), "more": (5, 3, 9), "few": (1, 0)}
    assert splits(train={"file": "turns.json"})["train"] == (31, 32)
    assert splits(train={"ids": [3, 1, 3], "repeated": "drop"})["train"] == (3, 1)


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ({}, "no split"),
        ({"train": {"range": [5, 5]}}, "expected `{range: "),
        ({"train": {"range": [0, 600]}}, "task 544, but the server has 0 to 543"),
        ({"train": {"range": [0, 9], "excpet": []}}, "unknown key `excpet`"),
        ({"train": {"ids": [1, True]}}, "expected `{range: "),
        ({"train": {"ids": [1, 2, 1]}}, "holds task 1 twice: write `repeated: drop`"),
        ({"train": {"ids": [1, 2, 1, 2]}}, "holds task 1 and 1 others twice"),
        ({"train": {"ids": [1], "repeated": "keep"}}, "can only be `drop`"),
        ({"train": 3}, "expected `{range: "),
        ({"train/x": {"ids": [1]}}, "no name"),
        ({"train": {"file": "nowhere"}}, "no file nowhere"),
        ({"train": {"file": "broken.json"}}, "neither JSON"),
        ({"train": {"file": "goals.json"}}, "'craft a stick' in goals.json is no task"),
        ({"train": {"range": [0, 9], "except": ["test"]}}, "`except` names no other split"),
        ({"train": {"range": [0, 9], "except": [{"a": 1}]}}, "`except` names no other split"),
        ({"train": {"range": [False, 9]}}, "expected `{range: "),
        ({"train": {"range": [0, 10**9]}}, "expected `{range: "),
        ({"train": {"file": "deep.json"}}, "neither JSON"),
        ({"train": {"file": "long.txt"}}, "is no task"),
        ({"a": {"range": [0, 9], "except": ["b"]}, "b": {"range": [0, 20]}}, "holds no task"),
    ],
)
def test_what_is_refused(written: Any, says: str) -> None:
    with pytest.raises(SplitError, match=says):
        read_splits(written, FILES.get, 544)


def test_splits_that_share_a_task_are_refused_and_can_be_parted() -> None:
    train, test = {"range": [0, 10]}, {"ids": [3, 4, 12]}
    with pytest.raises(SplitError, match=r"`train` and `test` share 2 tasks \(3-4\)"):
        splits(train=train, test=test)
    parted = splits(train={**train, "except": ["test"]}, test=test)
    assert parted["train"] == (0, 1, 2, 5, 6, 7, 8, 9)


@given(st.lists(st.integers(0, 50), min_size=1, unique=True))
def test_numbers_survive_their_short_form(numbers: list[int]) -> None:
    assert unfold_numbers(fold_numbers(numbers)) == tuple(numbers)


def test_the_published_lists_of_agent_r() -> None:
    if not PUBLISHED.is_dir():
        pytest.skip("the published lists are not here (../shared/data/splits)")

    def read(name: str) -> bytes:
        return (PUBLISHED / name).read_bytes()

    found = read_splits(
        {
            "train": {"file": "agentr_textcraft_train_clean.json"},
            "test": {"file": "agentr_textcraft_test.json"},
        },
        read,
        544,
    )
    assert len(found["train"]) == 374
    assert fold_numbers(found["test"]) == "0-30,140-180,420-444,533-535"

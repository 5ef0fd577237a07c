"""Tasks of files, and their splits."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from tests.backends.colbench.conftest import BULK_TASK, code_task, row

from agentc_backends.environments.colbench.tasks import (
    DEFAULT,
    CodeTask,
    digest,
    read_rules,
    read_tasks,
    resolve,
)
from agentc_backends.environments.server.splits import SplitError, TasksError

MANY = tuple(code_task(f"Task {n}.", f"def f(): return {n}", ["f()"]) for n in range(400))
OTHERS = tuple(code_task(f"Other {n}.", f"def f(): return {n}", ["f()"]) for n in range(5))


def tasks_of(file: str | None) -> Sequence[CodeTask]:
    if file not in (None, "more.jsonl"):
        raise TasksError(f"there is no file {file}")
    return MANY if file is None else (*OTHERS, OTHERS[0])


def split(written: Mapping[str, Any]) -> dict[str, tuple[CodeTask, ...]]:
    return resolve(read_rules(written), tasks_of)


def test_a_row_is_a_task() -> None:
    text = f"{row(BULK_TASK)}\n\n"
    assert read_tasks(text.encode(), "tasks.jsonl") == (BULK_TASK,)
    whole = f"{BULK_TASK.description}\0{BULK_TASK.reference}"
    assert BULK_TASK.id == hashlib.sha256(whole.encode()).hexdigest()[:16]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "a.jsonl holds no task"),
        (b"\xff", "no text in UTF-8"),
        (b"{}\n{", "a.jsonl, line 1 is no task; expected `problem_description`"),
        (f"{row(BULK_TASK)}\n{{".encode(), "a.jsonl, line 2 is no JSON"),
        (row(BULK_TASK).replace("bulk_price(0)", "").encode(), ""),
        (
            b'{"problem_description": "a", "ground_truth": "b", "test_cases": {}}',
            "line 1: `test_cases` are expressions, one or more",
        ),
        (
            b'{"problem_description": " ", "ground_truth": "b", "test_cases": ["f()"]}',
            "line 1 is no task",
        ),
    ],
)
def test_what_is_no_file_of_tasks(content: bytes, message: str) -> None:
    if not message:
        assert len(read_tasks(content, "a.jsonl")) == 1
        return
    with pytest.raises(TasksError, match=message.replace("(", r"\(")):
        read_tasks(content, "a.jsonl")


def test_parts_by_hash_are_80_10_and_10_percent() -> None:
    found = split(DEFAULT)
    assert sum(map(len, found.values())) == len(MANY)
    shares = {name: len(tasks) / len(MANY) for name, tasks in found.items()}
    assert shares == pytest.approx({"train": 0.8, "validation": 0.1, "test": 0.1}, abs=0.05)


def test_ranges_and_files() -> None:
    found = split(
        {
            "train": {"range": [0, 300]},
            "test": {"range": [290, 320], "except": ["train"]},
            "more": {"file": "more.jsonl", "repeated": "drop"},
            "first": {"file": "more.jsonl", "range": [0, 2], "except": []} | {"except": "train"},
        }
        | {"more": {"file": "more.jsonl", "repeated": "drop", "except": ["first"]}}
    )
    assert found["train"] == MANY[:300]
    assert found["test"] == MANY[300:320]
    assert found["first"] == OTHERS[:2]
    assert found["more"] == OTHERS[2:]


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ({}, "no split is given"),
        ({"a b": {"own": "train"}}, "`a b` is no name for a split"),
        ({"train": {"own": "dev"}}, "expected `{own: train|validation|test}`"),
        ({"train": {"own": "train", "range": [0, 1]}}, "expected"),
        ({"train": {"range": [3, 3]}}, "expected"),
        ({"train": {"range": [0, 401]}}, "ends at 401, but there are 400 tasks: 0 to 399"),
        ({"train": {"file": "more.jsonl"}}, "holds 1 tasks twice: write `repeated: drop`"),
        ({"train": {"range": [0, 2], "except": ["x"]}}, "`except` names no other split: x"),
        ({"a": {"range": [0, 9]}, "b": {"range": [8, 10]}}, "the splits `a` and `b` share 1 tasks"),
        ({"a": {"range": [0, 9]}, "b": {"range": [8, 9], "except": ["a"]}}, "`b` holds no task"),
        ({"a": {"range": [0, 9], "file": 3}}, "expected"),
        ({"a": {"range": [0, 9], "repeated": "keep"}}, "expected"),
    ],
)
def test_splits_that_are_written_wrongly(written: Mapping[str, Any], message: str) -> None:
    with pytest.raises(SplitError) as caught:
        split(written)
    assert message in str(caught.value)


def test_the_digest_is_of_tasks_and_their_tests() -> None:
    one = {"train": MANY[:3], "test": MANY[3:4]}
    assert digest(one) == digest(dict(reversed(one.items())))
    other = code_task(MANY[0].description, MANY[0].reference, ["f()", "f()"])
    assert len({digest(one), digest({**one, "train": (other, *MANY[1:3])}),
                digest({**one, "train": MANY[:2]})}) == 3  # fmt: skip

"""What a lock holds of each job besides its key: what changed is named, whoever wrote the lock."""

from __future__ import annotations

import json

import pytest

from agentc.lock.collect import locked_records
from agentc.lock.compare import compare_lock, job_changes
from agentc.lock.document import LockDocument


def line(inputs: dict[str, list[str]] | None = None, **settings: object) -> str:
    own = {f"settings.{name}": value for name, value in settings.items()}
    return json.dumps({"inputs": inputs or {}, "own": {"backend": "x", "version": 1, **own}})


def lock(settings: dict[str, str], **keys: str) -> LockDocument:
    jobs = {name: f"sft/{key}" for name, key in keys.items()}
    sections = {"jobs": jobs, "settings": settings}
    return LockDocument(spec="s.yaml", agentc="1", keys=1, sections=sections)  # type: ignore[arg-type]


def told(before: LockDocument, after: LockDocument) -> list[str]:
    return [*job_changes(before, after, 2)]


def test_settings_are_named_and_what_follows_is_counted() -> None:
    read = {"data": ["a"]}
    before = lock({"a": line(n=5), "b": line(read), "c": line()}, a="1", b="1", c="1")
    after = lock({"a": line(n=6), "b": line(read), "c": line()}, a="2", b="2", c="1")
    assert told(before, after) == ["n: 5 -> 6 (a)", "1 more job follows from that"]


def test_jobs_that_came_went_and_have_other_names() -> None:
    before = lock({"old": line(n=1), "a": line(n=2)}, old="1", a="2")
    after = lock({"new": line(n=3), "b": line(n=2)}, new="3", b="2")
    assert told(before, after) == [
        "new: new",
        "gone: old",
        "the same under another name: b (was a)",
    ]


@pytest.mark.parametrize(
    ("keys", "count"),
    [
        ({"a": "1", "b": "1"}, None),
        ({"a": "1", "b": "2"}, "1 of 2"),
        ({"a": "1", "b": "1", "c": "1"}, "1 of 3"),
        ({"a": "1"}, "1 of 2"),
        ({}, "2 of 2"),
    ],
)
def test_jobs_that_changed_came_or_went_are_counted(
    keys: dict[str, str], count: str | None
) -> None:
    found = compare_lock(lock({}, a="1", b="1"), lock({}, **keys), "error")
    said = [each.message for each in found]
    assert said == ([f"{count} jobs are not those of the lock"] if count else [])


def test_more_changes_than_are_shown() -> None:
    before = lock({"a": line(k=1, l=1, m=1, n=1)}, a="1")
    after = lock({"a": line(k=2, l=2, m=2, n=2)}, a="2")
    assert told(before, after) == ["k: 1 -> 2 (a)", "l: 1 -> 2 (a)", "and 2 more changes"]


def test_a_key_that_changed_for_no_setting_is_called_by_its_job() -> None:
    before, after = lock({"a": line()}, a="1"), lock({"a": line()}, a="2")
    assert told(before, after) == ["changed: a"]


@pytest.mark.parametrize(
    "strange",
    ["", "no JSON", "[]", "{}", '{"own": 1, "inputs": {}}', "[" * 100_000,
     '{"own": {"a": ' + "[" * 30 + "]" * 30 + '}, "inputs": {}}'],
)  # fmt: skip
def test_what_is_no_line_of_a_lock_is_passed_over(strange: str) -> None:
    assert locked_records({"a": "sft/1"}, {"a": strange}) == {}
    assert told(lock({"a": strange}, a="1"), lock({"a": line()}, a="2")) == ["changed: a"]


def test_a_line_cannot_steer_a_terminal() -> None:
    evil = json.dumps(
        {"inputs": {"\x1b[2J": ["a"]}, "own": {"settings.\x1b[2J": 1, "settings.n": 2}}
    )
    [record] = locked_records({"a": "sft/1"}, {"a": evil}).values()
    assert record.own == {"settings.n": 2}
    assert record.inputs == {}

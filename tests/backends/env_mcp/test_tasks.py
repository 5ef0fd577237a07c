"""Tasks of an MCP server as a spec writes them, and the rules by which an episode succeeds."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentc_backends.environments.mcp.settings import (
    McpTask,
    as_rows,
    is_needed,
    read_tasks,
    tasks_digest,
)
from agentc_backends.environments.server.splits import TasksError

ROWS = [
    {"instruction": "What is 2 + 2?", "answer": "Four  apples"},
    {"instruction": "Submit.", "pattern": "^accepted", "tool": "submit"},
    {"instruction": "Make it so."},
]
SUCCESS = {"pattern": "(?i)done", "tool": None}


def read(tasks: dict[str, Any], success: dict[str, Any] | None = None) -> tuple[McpTask, ...]:
    files = {"tasks.jsonl": "\n".join(map(json.dumps, ROWS)).encode(), "odd.jsonl": b"{"}
    return read_tasks(tasks, success, files.get)


def test_rows_and_files_are_the_same_tasks_and_so_is_what_a_plan_keeps() -> None:
    tasks = read({"rows": ROWS}, SUCCESS)
    assert tasks == read({"file": "tasks.jsonl"}, SUCCESS)
    assert tasks[2] == McpTask(instruction="Make it so.", pattern="(?i)done")
    assert read({"rows": as_rows(tasks)}) == tasks
    assert is_needed(SUCCESS, tasks)
    assert not is_needed(SUCCESS, tasks[:2])
    assert tasks_digest(tasks) != tasks_digest(read({"rows": ROWS}, {"pattern": "done"}))


def test_an_answer_is_compared_without_case_and_spaces() -> None:
    task = read({"rows": ROWS}, SUCCESS)[0]
    assert task.is_answered_by(" four apples\n")
    assert not task.is_answered_by("four")
    assert not task.is_reached_by("submit", "four apples")


def test_a_pattern_is_searched_in_results_of_its_tool() -> None:
    _, submitted, anywhere = read({"rows": ROWS}, SUCCESS)
    assert submitted.is_reached_by("submit", "accepted with thanks")
    assert not submitted.is_reached_by("submit", "not accepted")
    assert not submitted.is_reached_by("look", "accepted")
    assert anywhere.is_reached_by("look", "all DONE")
    assert not anywhere.is_answered_by("done")


@pytest.mark.parametrize(
    ("tasks", "success", "says"),
    [
        ({"file": "none.jsonl"}, None, "there is no file none.jsonl that can be read"),
        ({"file": "odd.jsonl"}, None, "odd.jsonl, line 1 is no JSON"),
        ({"rows": []}, None, r"expected `\{rows: \[\.\.\.\]\}` or `\{file: path\}`"),
        ({"rows": ROWS, "file": "tasks.jsonl"}, None, "expected `{rows"),
        ({"rows": ROWS}, None, "row 2 needs an `answer` or a `pattern`.*`success` can say it"),
        ({"rows": ["do"]}, None, "row 0 is no object"),
        ({"rows": [{"answer": "4"}]}, None, "row 0 has no `instruction`"),
        ({"rows": [{**ROWS[0], "answer": 4}]}, None, "row 0: `answer` is 4; expected a text"),
        ({"rows": [{**ROWS[0], "anser": "4"}]}, None, "row 0 has an unknown key `anser`"),
        ({"rows": [{**ROWS[0], "pattern": "4"}]}, None, "one of both$"),
        ({"rows": [{**ROWS[0], "tool": "add"}]}, None, "names a `tool` without a `pattern`"),
        ({"rows": [{**ROWS[1], "pattern": "(4"}]}, None, r"`\(4` is no regular expression"),
    ],
)
def test_what_is_no_task_is_refused(
    tasks: dict[str, Any], success: dict[str, Any] | None, says: str
) -> None:
    with pytest.raises(TasksError, match=says):
        read(tasks, success)

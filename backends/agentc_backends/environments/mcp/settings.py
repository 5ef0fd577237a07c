"""What a spec says of an MCP server: settings, and tasks with the rule by which an episode
succeeds.

The protocol has no tasks, so a spec gives them. They are read while the spec is compiled and, from
what the plan kept (`as_rows`), where they are served."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from agentc.program.settings import setting
from agentc_backends.environments.server.splits import ReadFile, TasksError, read_rows


# fmt: off
@dataclass(frozen=True, slots=True, kw_only=True)
class McpSettings:
    # What a server is told are the rows themselves; its identity has their digest.
    tasks: Mapping[str, Any] = setting(
        "What agents are to do: `{rows: [...]}`, or `{file: path}` with a row of JSON a line. A "
        "row has an `instruction`, and what its success is: an `answer`, or a `pattern` (and its "
        "`tool`).", rule=False)
    # What a server is told are the numbers, however they are written.
    splits: Mapping[str, Any] = setting(
        "Places in `tasks`, from 0, of each split: `{range: [first, end]}` (the end is left out), "
        "`{ids: [...]}` or `{file: path}`, each with `except: [other split]`. Splits that share a "
        "task are refused.")
    success: Mapping[str, Any] | None = setting(
        "The success of tasks that say none themselves: a result of a tool.", None, rule=False)
    tools: tuple[str, ...] = setting(
        "Tools that agents see and may call. Unset: all that the server has.", ())
    instruction: str | None = setting(
        "What each task's first text begins with.", None, blank=True)
    max_turns: int = setting("Turns of an episode, where the stage does not say.", 20, minimum=1)
    launch: Mapping[str, Any] | None = setting(
        "Start a server for each episode and speak with it over stdio. Commands of a spec run only "
        "where AGENTC_ALLOW_LAUNCH is 1. Command, folder and variables enter the key.", None,
        rule=False)
    url: str | None = setting(
        "Address of a server that runs already and speaks streamable HTTP.", None,
        pattern="^https?://", identity="placement")
    fingerprint: str | None = setting(
        "What the server's fingerprint must be (its log has it; a digest of its tools); another "
        "server is refused. Unset: any.", None, pattern="^[0-9a-f]{32}$", served=False)
    release: str | None = setting(
        "What is served, in words, such as a commit: results of another release get keys of their "
        "own.", None)
    timeout_s: float = setting(
        "How long a session may take to open, and one call.", 120.0, above=0, identity="placement")
    sessions: int = setting(
        "Episodes at a time; each has a process of its own under `launch`.", 8, minimum=1,
        identity="placement")

    @property
    def reward(self) -> Mapping[str, Any]:
        """An episode's is 1 where it succeeds, else 0 (`external/environment.py`)."""
        return {}


_KEYS = ("instruction", "answer", "pattern", "tool")
_EXPECTED = "`{rows: [...]}` or `{file: path}`"


@dataclass(frozen=True, slots=True, kw_only=True)
class McpTask:
    """Either `answer` is what an agent has to say at the end, or `pattern` what has to be found in
    a result (of `tool` alone, where one is named)."""

    instruction: str
    answer: str | None = None
    pattern: str | None = None
    tool: str | None = None

    def is_answered_by(self, text: str) -> bool:
        """Whether the texts are equal but for case and spaces."""
        return self.answer is not None and _folded(text) == _folded(self.answer)

    def is_reached_by(self, tool: str, result: str) -> bool:
        """Whether a result that is no error shows that the task is done."""
        if self.pattern is None or self.tool not in (None, tool):
            return False
        return re.search(self.pattern, result) is not None


def read_tasks(
    written: Mapping[str, Any], success: Mapping[str, Any] | None, read_file: ReadFile
) -> tuple[McpTask, ...]:
    """The tasks in their order; `success` is that of rows that say none. Raises TasksError."""

    def task_of(row: Any, where: str) -> McpTask:
        return _task(row, success or {}, where)

    match written:
        case {"rows": list(rows)} if len(written) == 1 and rows:
            found = tuple(task_of(row, f"row {number}") for number, row in enumerate(rows))
        case {"file": str(path)} if len(written) == 1:
            content = read_file(path)
            if content is None:
                raise TasksError(f"there is no file {path} that can be read")
            found = read_rows(content, path, task_of)
        case _:
            raise TasksError(f"`tasks` is {json.dumps(written)[:80]}; expected {_EXPECTED}")
    return found


def is_needed(success: Mapping[str, Any] | None, tasks: Sequence[McpTask]) -> bool:
    """Whether a `success` for all, where there is one, is that of any task."""
    return success is None or any(task.pattern == success.get("pattern") for task in tasks)


def as_rows(tasks: Sequence[McpTask]) -> list[dict[str, str]]:
    """What `read_tasks` makes the same tasks of."""
    return [{key: v for key, v in asdict(task).items() if v is not None} for task in tasks]


def tasks_digest(tasks: Sequence[McpTask]) -> str:
    """Of all that tasks are, in their order."""
    return hashlib.sha256(json.dumps(as_rows(tasks), sort_keys=True).encode()).hexdigest()


def _task(row: Any, success: Mapping[str, Any], where: str) -> McpTask:
    if not isinstance(row, Mapping):
        raise TasksError(f"{where} is no object")
    for key, value in row.items():
        if key not in _KEYS:
            raise TasksError(f"{where} has an unknown key `{key}`; expected {', '.join(_KEYS)}")
        if not isinstance(value, str) or not value.strip():
            raise TasksError(f"{where}: `{key}` is {json.dumps(value)[:80]}; expected a text")
    if "instruction" not in row:
        raise TasksError(f"{where} has no `instruction`")
    said = dict(row)
    if not {"answer", "pattern"} & set(row):
        said |= {key: value for key, value in success.items() if value is not None}
    if ("answer" in said) == ("pattern" in said):
        if "answer" in said:
            raise TasksError(
                f"{where} has an `answer` and a `pattern`: success is one of both",
                fix="remove one of them",
            )
        raise TasksError(
            f"{where} needs an `answer` or a `pattern`; `success` can say it for all",
            fix="write `answer: TEXT` or `pattern: EXPRESSION` in the row, or `success: {pattern: "
            "EXPRESSION}` in the environment",
        )
    if "tool" in said and "pattern" not in said:
        raise TasksError(f"{where} names a `tool` without a `pattern` of its result")
    try:
        re.compile(said.get("pattern", ""))
    except re.error as error:
        raise TasksError(
            f"{where}: `{said['pattern']}` is no regular expression: {error}",
            fix=f"write `{re.escape(said['pattern'])}` for the text itself",
        ) from None
    return McpTask(**said)


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()

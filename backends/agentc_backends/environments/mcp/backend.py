"""Declares `env.mcp`: any MCP server, behind agentc's protocol.

Tasks, success and turns are what the spec says, since the protocol has none of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from agentc.backend_api import EnvironmentBackend, LeaseDraft, OptionView
from agentc.diagnostics.suggest import did_you_mean
from agentc.kinds.field import Field, Json, string
from agentc.kinds.settings import fields_of
from agentc_backends.environments.declaration import effective, environment_lease
from agentc_backends.environments.external.fields import check_place, command_fields, declared_by
from agentc_backends.environments.external.task_lists import expected_numbers, read_splits
from agentc_backends.environments.mcp.settings import (
    McpSettings,
    McpTask,
    as_rows,
    is_needed,
    read_tasks,
    tasks_digest,
)
from agentc_backends.environments.server.settings import rules_of
from agentc_backends.environments.server.splits import SplitError, TasksError, fold_numbers
from agentc_backends.software import MCP

_SUCCESS: tuple[Field, ...] = (
    string("pattern", "Regular expression (Python's) that is found in a result which ends the "
           "episode with success."),
    string("tool", "The tool whose results count. Unset: any.", nullable=True),
)  # fmt: skip


def _lease(options: OptionView) -> LeaseDraft:
    settings = effective(options, McpSettings)
    check_place(options, settings.url, settings.launch)
    tasks = _tasks(options, settings)
    try:
        splits = read_splits(settings.splits, options.file, len(tasks) or None, "`tasks`")
    except SplitError as error:
        options.refuse("splits", str(error), fix="`tasks` are counted from 0; write "
                       "`{range: [first, end]}`, without the end, or `{ids: [...]}`")  # fmt: skip
        splits = {}
    lines: dict[str, Json] = {name: fold_numbers(part) for name, part in splits.items()}
    # Rows say their success themselves from here on.
    served = replace(settings, splits=lines, tasks={"rows": as_rows(tasks)}, success=None)
    digest = tasks_digest(tasks)
    expect: dict[str, Json] = {"options": rules_of(served), "tasks_sha256": digest}
    if (pinned := options.get("fingerprint")) is not None:
        expect["fingerprint"] = pinned
    # Keys follow what is asked and expected, however it is written.
    written = {n: v for n, v in options.identity().items() if n.partition(".")[0] != "success"}
    return environment_lease(
        BACKEND,
        options,
        served,
        identity={**written, "splits": lines, "tasks": digest},
        expect=expect,
        # Two sessions are opened before anybody is served.
        ready_timeout_s=2 * settings.timeout_s + 60.0,
    )


def _tasks(options: OptionView, settings: McpSettings) -> tuple[McpTask, ...]:
    try:
        tasks = read_tasks(settings.tasks, settings.success, options.file)
    except TasksError as error:
        options.refuse("tasks", str(error), fix=error.fix)
        return ()
    for number, task in enumerate(tasks):
        if settings.tools and task.tool is not None and task.tool not in settings.tools:
            options.refuse(
                "tools",
                f"row {number} succeeds by a result of `{task.tool}`, which is not among `tools`",
                fix=did_you_mean(task.tool, settings.tools) or f"add `{task.tool}` to `tools`",
            )
    if not is_needed(settings.success, tasks):
        options.refuse("success", "every task says itself what its success is")
    return tasks


def _configured(given: Mapping[str, Json]) -> EnvironmentBackend:
    return declared_by(BACKEND, given)


BACKEND = EnvironmentBackend(
    id="env.mcp",
    example='{url: "http://127.0.0.1:8000/mcp", tasks: {rows: [{instruction: Add 1 and 2., '
    'answer: "3"}]}, splits: {test: {range: [0, 1]}}}',
    version=2,
    doc="Any MCP server, started for each episode or at an address: its tools are the actions, "
    "their results the observations, and tasks with their success come from the spec.",
    software=MCP,
    lease=_lease,
    fields=fields_of(
        McpSettings,
        groups={
            "success": _SUCCESS,
            "launch": command_fields("Program and arguments; `{python}` is this interpreter."),
        },
    ),
    max_turns=20,
    expected_tasks=expected_numbers,
    configured=_configured,
)

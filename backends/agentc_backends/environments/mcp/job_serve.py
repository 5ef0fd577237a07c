"""Serves an MCP server until SIGTERM, as `python -m` of this module.

The server is one at an address, or a command that is started for each episode; `backend.py` writes
which.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from functools import partial

from agentc_backends.environments.external.launch import UpstreamLaunchError, read_launch
from agentc_backends.environments.external.task_lists import (
    fingerprint,
    log_fingerprint,
    task_numbers,
)
from agentc_backends.environments.mcp.connection import Greeting, McpSessionError, McpUpstream
from agentc_backends.environments.mcp.environment import McpEnvironment, ServedTools
from agentc_backends.environments.mcp.settings import McpSettings, read_tasks
from agentc_backends.environments.mcp.translation import ToolActions, chosen
from agentc_backends.environments.server.process import serve
from agentc_backends.environments.server.program import read_arguments, spec_content
from agentc_backends.server_process import REFUSED


def main(arguments: Sequence[str] | None = None) -> int:
    try:
        settings, options = read_arguments(McpSettings, arguments)
        launch = None if settings.launch is None else read_launch(settings.launch)
        upstream = McpUpstream(launch, settings.url, timeout_s=settings.timeout_s)
    except (ValueError, UpstreamLaunchError) as error:
        print(error, file=sys.stderr)
        return REFUSED
    try:
        served = survey(upstream, settings)
        # A thread for each, so that those that wait for an answer hold up none that has one.
        options.max_sessions = min(options.max_sessions, settings.sessions)
        return serve(partial(McpEnvironment, served), options, threads=options.max_sessions)
    except (ValueError, McpSessionError) as error:
        print(error, file=sys.stderr)
        return REFUSED
    finally:
        upstream.end()


def survey(upstream: McpUpstream, settings: McpSettings) -> ServedTools:
    """Look at the server before anybody uses it. Raises McpSessionError, ValueError."""
    tasks = read_tasks(settings.tasks, settings.success, spec_content)
    seen: list[Greeting] = []

    def listed(_: int) -> str:
        session = upstream.begin()
        session.close()
        seen.append(session.greeting)
        return _greeting_text(session.greeting)

    # Two sessions that list other tools are no one environment.
    found = fingerprint(listed, (0,))
    tools = chosen(seen[0].tools, settings.tools)
    ToolActions(tools, answers=any(task.answer is not None for task in tasks))
    names = [tool.name for tool in tools]
    for number, task in enumerate(tasks):
        if task.tool is not None and task.tool not in names:
            raise ValueError(f"task {number} succeeds by `{task.tool}`, which is none of its tools")
    log_fingerprint(found)
    numbers = task_numbers(McpEnvironment.name, settings.splits)
    return ServedTools(upstream, settings, tasks, numbers, seen[0], found)


def _greeting_text(greeting: Greeting) -> str:
    """What the server says of itself and its tools, as text that a digest can be made of."""
    tools = [[tool.name, tool.description, tool.schema] for tool in greeting.tools]
    return json.dumps([greeting.name, greeting.instructions, tools], sort_keys=True)


if __name__ == "__main__":
    sys.exit(main())

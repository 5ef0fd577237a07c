"""Serves an AgentGym server until SIGTERM: `python -m agentc_backends.agentgym.job_serve`.

The upstream server is one at an address (`--url`) or one that is started here (`--launch`).
`backend.py` writes the arguments; mappings among them are JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from agentc_backends.agentgym.dialect import DialectError, overridden
from agentc_backends.agentgym.dialects import FAMILY, OTHER, dialect_named
from agentc_backends.agentgym.environment import AgentGymEnvironment, Served
from agentc_backends.agentgym.exchange import UpstreamError
from agentc_backends.agentgym.fingerprint import fingerprint, probes_of
from agentc_backends.agentgym.launch import LaunchError, Running, read_launch, start
from agentc_backends.agentgym.task_lists import Numbers, from_text
from agentc_backends.agentgym.upstream import Upstream
from agentc_backends.environment_server.process import add_server_arguments, serve

LOST = 3
"""Exit status when the launched server ended before this one."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    running: Running | None = None
    try:
        dialect = overridden(dialect_named(options.server), options.dialect)
        if options.launch is not None:
            running = start(read_launch(options.launch))
        url = options.url if running is None else running.url
        upstream = Upstream(url, dialect, timeout_s=options.timeout, most_sessions=options.sessions)
        served = _survey(upstream, options)
    except (DialectError, LaunchError, UpstreamError, ValueError) as error:
        print(error, file=sys.stderr)
        if running is not None:
            running.end()
        return 2
    if running is not None:
        running.watch()
    try:
        open_environment = partial(AgentGymEnvironment, served, served.numbers())
        status = serve(open_environment, options, threads=options.sessions)
        lost = running is not None and running.status() is not None
        return LOST if lost else status
    finally:
        if running is None or running.status() is None:
            upstream.close()
        if running is not None:
            running.end()


def _survey(upstream: Upstream, options: argparse.Namespace) -> Served:
    """Look at the server before anybody uses it. Raises UpstreamError."""
    splits: dict[str, Numbers] = {n: from_text(text) for n, text in options.splits.items()}
    found = fingerprint(upstream, probes_of(splits))
    if found.unstable is not None:
        task, one, other = found.unstable
        print(
            f"two resets of task {task} give different first texts, so this server has no "
            f"fingerprint:\n  {one[:200]!r}\n  {other[:200]!r}",
            file=sys.stderr,
        )
    else:
        print(f"fingerprint: {found.value}", file=sys.stderr, flush=True)
    return Served(upstream, splits, found, upstream.greeting(), options.release, options.dialect)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="agentgym.job_serve", description=__doc__)
    add_server_arguments(parser)
    parser.add_argument("--server", required=True, choices=(*FAMILY, OTHER))
    parser.add_argument("--splits", required=True, type=_mapping, help='{"train": "0-9,12"}')
    place = parser.add_mutually_exclusive_group(required=True)
    place.add_argument("--url", help="where the upstream server is")
    place.add_argument("--launch", type=_mapping, help='{"command": [...], "cwd": ...}')
    parser.add_argument("--dialect", type=_mapping, default={}, help="changes to the dialect")
    parser.add_argument("--release", help="what is served, in words")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds for each call")
    parser.add_argument("--sessions", type=int, default=64, help="open upstream at a time")
    return parser


def _mapping(text: str) -> Mapping[str, Any]:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value


if __name__ == "__main__":
    sys.exit(main())

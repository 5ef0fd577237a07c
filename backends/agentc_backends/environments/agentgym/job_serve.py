"""Serves an AgentGym server until SIGTERM, as `python -m` of this module.

The upstream server is one at an address (`--url`) or one that is started here (`--launch`).
`backend.py` writes the arguments; mappings among them are JSON.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial

from agentc_backends.environments.agentgym.dialect import DialectError, overridden
from agentc_backends.environments.agentgym.dialects import dialect_named
from agentc_backends.environments.agentgym.environment import AgentGymEnvironment, UpstreamShared
from agentc_backends.environments.agentgym.exchange import UpstreamError
from agentc_backends.environments.agentgym.settings import AgentGymSettings
from agentc_backends.environments.agentgym.upstream import Upstream
from agentc_backends.environments.foreign.fingerprint import (
    Fingerprint,
    fingerprint,
    probes_of,
    tell_fingerprint,
)
from agentc_backends.environments.foreign.launch import (
    LOST,
    Running,
    UpstreamLaunchError,
    read_launch,
    start,
)
from agentc_backends.environments.foreign.task_lists import Numbers
from agentc_backends.environments.server.process import serve
from agentc_backends.environments.server.program import read_arguments
from agentc_backends.environments.server.splits import unfold_numbers


def main(arguments: Sequence[str] | None = None) -> int:
    running: Running | None = None
    try:
        settings, options = read_arguments(AgentGymSettings, arguments)
        dialect = overridden(dialect_named(settings.server), settings.dialect or {})
        if settings.launch is not None:
            running = start(read_launch(settings.launch))
        url = settings.url if running is None else running.url
        if url is None:
            raise ValueError("one of --url and --launch says where the server is")
        sessions = settings.sessions
        upstream = Upstream(url, dialect, timeout_s=settings.timeout_s, most_sessions=sessions)
        served = _survey(upstream, settings)
    except (DialectError, UpstreamLaunchError, UpstreamError, ValueError) as error:
        print(error, file=sys.stderr)
        if running is not None:
            running.end()
        return 2
    if running is not None:
        running.watch()
    try:
        open_environment = partial(AgentGymEnvironment, served, served.numbers())
        status = serve(open_environment, options, threads=sessions)
        lost = running is not None and running.status() is not None
        return LOST if lost else status
    finally:
        if running is None or running.status() is None:
            upstream.close()
        if running is not None:
            running.end()


def _survey(upstream: Upstream, settings: AgentGymSettings) -> UpstreamShared:
    """Look at the server before anybody uses it. Raises UpstreamError."""
    splits: dict[str, Numbers] = {n: unfold_numbers(text) for n, text in settings.splits.items()}
    found = _fingerprint(upstream, probes_of(splits))
    tell_fingerprint(found)
    changes = settings.dialect or {}
    return UpstreamShared(upstream, splits, found, upstream.greeting(), settings.release, changes)


def _fingerprint(upstream: Upstream, probes: Numbers) -> Fingerprint:
    """Raises UpstreamError."""
    session = upstream.acquire()
    usable = False
    try:
        found = fingerprint(lambda task: upstream.reset(session, task), probes)
        usable = True
    finally:
        upstream.release(session, usable=usable)
    return found


if __name__ == "__main__":
    sys.exit(main())

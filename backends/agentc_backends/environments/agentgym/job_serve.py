"""Serves an AgentGym server until SIGTERM, as `python -m` of this module.

The upstream server is one at an address (`--url`) or one that is started here (`--launch`).
`backend.py` writes the arguments; mappings among them are JSON.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial

from agentc_backends.environments.agentgym.dialects import DialectError, dialect_named, overridden
from agentc_backends.environments.agentgym.environment import AgentGymEnvironment, UpstreamShared
from agentc_backends.environments.agentgym.settings import AgentGymSettings
from agentc_backends.environments.agentgym.upstream import Upstream, UpstreamError
from agentc_backends.environments.external.launch import serve_upstream
from agentc_backends.environments.external.task_lists import (
    Fingerprint,
    Numbers,
    fingerprint,
    log_fingerprint,
    probes_of,
)
from agentc_backends.environments.server.process import serve
from agentc_backends.environments.server.program import read_arguments
from agentc_backends.environments.server.splits import unfold_numbers


def main(arguments: Sequence[str] | None = None) -> int:
    try:
        settings, options = read_arguments(AgentGymSettings, arguments)
        dialect = overridden(dialect_named(settings.server), settings.dialect or {})
    except (DialectError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    sessions = settings.sessions

    def survey(url: str) -> Callable[[Callable[[], bool]], int]:
        upstream = Upstream(url, dialect, timeout_s=settings.timeout_s, most_sessions=sessions)
        served = _survey(upstream, settings)
        opened = partial(AgentGymEnvironment, served, served.numbers())

        def work(there: Callable[[], bool]) -> int:
            try:
                return serve(opened, options, threads=sessions)
            finally:
                if there():
                    upstream.close()

        return work

    return serve_upstream(settings.url, settings.launch, survey, (UpstreamError,))


def _survey(upstream: Upstream, settings: AgentGymSettings) -> UpstreamShared:
    """Look at the server before anybody uses it. Raises UpstreamError."""
    splits: dict[str, Numbers] = {n: unfold_numbers(text) for n, text in settings.splits.items()}
    found = _fingerprint(upstream, probes_of(splits))
    log_fingerprint(found)
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

"""Serves an OpenEnv server until SIGTERM, as `python -m` of this module.

The upstream server is one at an address or one that is started here; `backend.py` writes which.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial

from agentc_backends.environments.external.launch import serve_upstream
from agentc_backends.environments.external.task_lists import (
    fingerprint,
    log_fingerprint,
    probes_of,
    task_numbers,
)
from agentc_backends.environments.openenv.connection import OpenEnvError, OpenEnvUpstream
from agentc_backends.environments.openenv.environment import OpenEnvEnvironment, Served
from agentc_backends.environments.openenv.settings import OpenEnvSettings
from agentc_backends.environments.openenv.translation import JsonAction, ReplyError, TextAction
from agentc_backends.environments.server.process import serve
from agentc_backends.environments.server.program import read_arguments
from agentc_backends.environments.server.splits import unfold_numbers


def main(arguments: Sequence[str] | None = None) -> int:
    try:
        settings, options = read_arguments(OpenEnvSettings, arguments)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2

    def survey(url: str) -> Callable[[object], int]:
        served = _survey(OpenEnvUpstream(url, timeout_s=settings.timeout_s), settings)
        # A thread for each, so that those that wait for a place hold up none that has one.
        options.max_sessions = min(options.max_sessions, settings.sessions)
        opened = partial(OpenEnvEnvironment, served)
        return lambda _: serve(opened, options, threads=options.max_sessions)

    return serve_upstream(settings.url, settings.launch, survey, (OpenEnvError, ReplyError))


def _survey(upstream: OpenEnvUpstream, settings: OpenEnvSettings) -> Served:
    """Look at the server before anybody uses it. Raises OpenEnvError, ReplyError, ValueError."""
    schema = upstream.get("/schema").get("action")
    if not isinstance(schema, dict):
        raise OpenEnvError(f"GET /schema of {upstream.url} shows no action")
    actions: TextAction | JsonAction
    if settings.action_form == "json":
        actions = JsonAction(schema, settings.action)
    else:
        actions = TextAction(schema, settings.action_field, settings.action)
    numbers = task_numbers("openenv", settings.splits)
    probes = probes_of({name: unfold_numbers(part) for name, part in settings.splits.items()})
    about = upstream.get("/metadata")
    unknown = fingerprint(lambda _: "", ())
    served = Served(upstream, settings, actions, about, numbers, unknown)
    found = fingerprint(served.first_text, probes)
    log_fingerprint(found)
    return Served(upstream, settings, actions, about, numbers, found)


if __name__ == "__main__":
    sys.exit(main())

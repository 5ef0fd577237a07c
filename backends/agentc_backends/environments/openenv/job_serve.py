"""Serves an OpenEnv server until SIGTERM, as `python -m` of this module.

The upstream server is one at an address or one that is started here; `backend.py` writes which.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial

from agentc_backends.environments.foreign.fingerprint import (
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
from agentc_backends.environments.foreign.task_lists import task_numbers
from agentc_backends.environments.openenv.actions import JsonAction, TextAction
from agentc_backends.environments.openenv.connection import OpenEnvError, OpenEnvUpstream
from agentc_backends.environments.openenv.environment import OpenEnvEnvironment, Served
from agentc_backends.environments.openenv.settings import OpenEnvSettings
from agentc_backends.environments.openenv.telling import ReplyError
from agentc_backends.environments.server.process import serve
from agentc_backends.environments.server.program import read_arguments
from agentc_backends.environments.server.splits import unfold_numbers


def main(arguments: Sequence[str] | None = None) -> int:
    running: Running | None = None
    try:
        settings, options = read_arguments(OpenEnvSettings, arguments)
        if settings.launch is not None:
            running = start(read_launch(settings.launch))
        url = settings.url if running is None else running.url
        if url is None:
            raise ValueError("one of `url` and `launch` says where the server is")
        served = _survey(OpenEnvUpstream(url, timeout_s=settings.timeout_s), settings)
    except (UpstreamLaunchError, OpenEnvError, ReplyError, ValueError) as error:
        print(error, file=sys.stderr)
        if running is not None:
            running.end()
        return 2
    if running is not None:
        running.watch()
    try:
        # A thread for each, so that those that wait for a place hold up none that has one.
        options.max_sessions = min(options.max_sessions, settings.sessions)
        status = serve(partial(OpenEnvEnvironment, served), options, threads=options.max_sessions)
        lost = running is not None and running.status() is not None
        return LOST if lost else status
    finally:
        if running is not None:
            running.end()


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
    tell_fingerprint(found)
    return Served(upstream, settings, actions, about, numbers, found)


if __name__ == "__main__":
    sys.exit(main())

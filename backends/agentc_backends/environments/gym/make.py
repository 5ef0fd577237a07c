"""`make`: an installed environment by its backend's name, with settings checked as a spec's are."""

from __future__ import annotations

import json
from pathlib import Path

from gymnasium.envs.registration import EnvSpec

from agentc.backend_api import load_backends
from agentc.diagnostics import Sink
from agentc.diagnostics.render import render_text
from agentc.kinds.field import Json
from agentc.runtime.servers.job_leases import fill
from agentc.serving.entry import typed_entry
from agentc_backends.environments.gym.environment import TextEnvironment
from agentc_backends.environments.server.program import NotInsideError, opener_of


class SettingsError(ValueError):
    """The environment or a setting does not exist, or has a wrong value; the message is that of
    `agentc check`."""


def make(
    name: str,
    *,
    split: str | None = None,
    max_turns: int | None = None,
    render_mode: str | None = None,
    **settings: Json,
) -> TextEnvironment:
    """The environment of a backend (`env.textcraft`, `textcraft`) with the settings of its entry
    under `environments:`; relative paths start in the present directory.

    Episodes are truncated after `max_turns` actions, by default the environment's own limit. Raises
    SettingsError, and NotInsideError where the environment needs its server (`agentc env-serve`)
    or software that this Python lacks.
    """
    sink = Sink()
    written = [(key, json.dumps(value)) for key, value in settings.items()]
    entry = typed_entry(name, written, load_backends(), sink, directory=Path.cwd())
    if entry is None:
        raise SettingsError("\n" + render_text(sink.sorted()))
    backend = entry.backend
    if not entry.lease.inside:
        raise NotInsideError(
            f"{backend.id} cannot be opened in this process; `agentc env-serve "
            f"{backend.id.removeprefix('env.')}` starts its server"
        )
    words = {"{host}": "127.0.0.1", "{port}": "0", "{ready_file}": "none"}
    spec = EnvSpec(
        id=f"agentc/{backend.id}-v{backend.version}",
        entry_point="agentc_backends.environments.gym:make",
        kwargs={"name": name, "split": split, "max_turns": max_turns, **settings},
    )
    return TextEnvironment(
        opener_of(fill(entry.lease.program, words), entry.lease.settings or None),
        split=split,
        max_turns=max_turns,
        render_mode=render_mode,
        spec=spec,
    )

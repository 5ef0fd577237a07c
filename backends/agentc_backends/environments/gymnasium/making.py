"""Makes the environment that a spec names, where it may be made.

An id may name a module, which gymnasium then imports: code of a spec's choice, as a command is. It
runs only where the person who runs agentc says so (`foreign/launch.py`). Neighbour: `job_serve.py`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import gymnasium
from gymnasium.error import Error

from agentc_backends.environments.foreign.launch import ALLOW
from agentc_backends.environments.gymnasium.settings import GymnasiumSettings

RENDERED = ("ansi", "both")
"""Ways of telling an observation that need the environment to render it."""
_OWN = "gymnasium.envs."


def made(settings: GymnasiumSettings) -> gymnasium.Env[Any, Any]:
    """A new environment. Raises ValueError, with what a person can mend."""
    check_allowed(settings.id)
    rendered = {"render_mode": "ansi"} if settings.observation in RENDERED else {}
    arguments: Mapping[str, Any] = {**settings.kwargs, **rendered}
    try:
        found = gymnasium.make(settings.id, disable_env_checker=True, **arguments)
    except Exception as error:  # whatever its constructor raises
        why = str(error) or type(error).__name__
        raise ValueError(f"`{settings.id}` cannot be made: {why}") from error
    modes = found.metadata.get("render_modes", [])
    if rendered and "ansi" not in modes:
        raise ValueError(
            f"`{settings.id}` renders no text (its modes are {', '.join(modes) or 'none'}): take "
            "`observation: value`"
        )
    return found


def check_allowed(id: str) -> None:
    """Raises ValueError where code that is not gymnasium's own would run, and nobody allowed it."""
    if os.environ.get(ALLOW) == "1":
        return
    module, _, name = id.rpartition(":")
    whose = f"the module `{module}`"
    if not module:
        try:
            entry = gymnasium.spec(name).entry_point
        except Error as error:
            raise ValueError(str(error)) from error
        if isinstance(entry, str) and entry.startswith(_OWN):
            return
        whose = f"`{entry}`"
    raise ValueError(
        f"the environment `{id}` is code of {whose}, not of gymnasium itself\n"
        f"If you trust it, export {ALLOW}=1 in the shell that runs agentc."
    )

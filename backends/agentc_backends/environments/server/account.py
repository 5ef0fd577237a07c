"""What an environment says of itself: the content of `/meta`, over HTTP and in process alike."""

from __future__ import annotations

from typing import Any

from agentc_backends.environments.server.environment import Counted, Environment, Noted

_CAPABILITY_ORDER = ("expert", "fork", "snapshot", "seed", "privileged")


def account(environment: Environment) -> dict[str, Any]:
    """Declared facts, the tasks of every split, and the identity, as JSON values; and what was
    counted since the server's start, where anything is."""
    held = environment.capabilities
    found: dict[str, Any] = {
        "name": environment.name,
        "version": environment.version,
        "reward_range": list(environment.reward_range),
        "reward_kind": environment.reward_kind,
        "success": {"field": "reward", "at_least": environment.success_threshold},
        "max_steps": environment.default_max_steps,
        "capabilities": [word for word in _CAPABILITY_ORDER if word in held],
        "splits": {split: list(environment.tasks(split)) for split in environment.splits},
        "identity": environment.identity(),
    }
    if isinstance(environment, Noted):
        found["facts"] = dict(environment.facts())
    if isinstance(environment, Counted):
        found["counts"] = dict(environment.counts())
    return found

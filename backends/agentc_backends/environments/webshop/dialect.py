"""WebShop as AgentGym's released client finds it: `env_idx`, `session_id`, and a bare number for a
new session; the page is asked for by GET /observation. Neighbour: `environment.py`."""

from __future__ import annotations

from typing import Any

from agentc_backends.environments.server.dialect import Answer, Dialect


def _opened(answer: Answer) -> object:
    """A pair; the second was to be for infos, and never is."""
    return [answer["observation"], None]


def _stepped(answer: Answer) -> object:
    return {
        "state": answer["observation"],
        "reward": answer["reward"],
        "done": answer["done"],
        "info": None,
    }


def _available_actions(environment: Any) -> object:
    return environment.available_actions()


WEBSHOP = Dialect(
    session_field="env_idx",
    task_field="session_id",
    bodiless_create=True,
    created=lambda session: session,
    opened=_opened,
    stepped=_stepped,
    queries={"/available_actions": _available_actions},
)

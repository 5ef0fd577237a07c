"""How members of the AgentGym family depart from `id`, `data_idx` and plain answers.

Its released clients find a server that speaks as they expect: an environment declares a `Dialect`
as its member `dialect`. agentc's own requests are answered in the plain way beside it.
Neighbours: `environment.py`, `application.py`; `environments/webshop/dialect.py` is an example.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Answer: TypeAlias = Mapping[str, Any]


def _numbered(session: int) -> object:
    return {"id": session}


def _as_it_is(answer: Answer) -> object:
    return answer


def _nothing_more(environment: Any) -> Answer:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """A family member's names and shapes.

    A session is spoken of in the dialect when it was created by a POST without a body, which
    agentc's clients never send (`bodiless_create` false refuses it, as TextCraft's server does).
    `created`, `opened` and `stepped` shape replies from plain ones; `extras` are further values
    of the environment that replies to resets and steps carry; `queries` are further GET routes,
    each a function of the session's environment.
    """

    session_field: str = "id"
    task_field: str = "data_idx"
    bodiless_create: bool = False
    created: Callable[[int], object] = _numbered
    opened: Callable[[Answer], object] = _as_it_is
    stepped: Callable[[Answer], object] = _as_it_is
    extras: Callable[[Any], Answer] = _nothing_more
    queries: Mapping[str, Callable[[Any], object]] = field(default_factory=dict)


PLAIN = Dialect()


def dialect_of(environment: object) -> Dialect:
    """What the environment declares; most declare nothing."""
    found = getattr(environment, "dialect", PLAIN)
    assert isinstance(found, Dialect), "the member `dialect` of an environment is a Dialect"
    return found

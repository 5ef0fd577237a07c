"""Parts of the published schema that depend on a backend: the entries of `environments` and
`servers`, and which backends may be named. Neighbour: `json_schema.py`, the whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agentc.backend_api import EnvironmentBackend, ServerBackend, StageBackend
from agentc.kinds.field import Json
from agentc.published.published import EXPRESSION, PER_ROUND, Schema
from agentc.schema import language


def dispatch(key: str, properties: Schema, branches: list[Json]) -> Schema:
    """A mapping whose other keys depend on one of them."""
    return {
        "type": "object",
        "properties": properties,
        "required": [key],
        "allOf": branches,
        "description": f"Which keys there are depends on `{key}`.",
    }


def resource_entries(
    what: str, backends: Sequence[EnvironmentBackend] | Sequence[ServerBackend]
) -> Schema:
    """An entry of a section, by its backend."""
    if not backends:
        return {"type": "object", "required": ["backend"]}
    family = backends[0].id.split(".")[0]
    branches: list[Json] = [
        {
            "if": is_backend(each.id, family),
            "then": {"$ref": f"#/$defs/{resource_name(each.id)}"},
        }
        for each in backends
    ]
    names: Schema = {"backend": backend_names(backends, family, {})}
    return {"title": what, **dispatch("backend", names, branches)}


def is_backend(backend: str, family: str) -> Schema:
    """The condition that an entry or a stage names this backend, long or short."""
    names: list[Json] = [backend, *_short(backend, family)]
    return {"properties": {"backend": {"enum": names}}, "required": ["backend"]}


def backend_names(
    backends: Iterable[StageBackend | EnvironmentBackend | ServerBackend],
    family: str,
    more: dict[str, str],
) -> Schema:
    docs = {each.id: each.doc for each in backends}
    docs |= {short: f"{docs[each]} ({each})" for each in [*docs] for short in _short(each, family)}
    docs |= more
    return {
        "description": language.STAGE_KEYS["backend"],
        "anyOf": [
            {"enum": [*docs], "enumDescriptions": [*docs.values()]},
            EXPRESSION,
            PER_ROUND,
        ],
    }


def _short(backend: str, family: str) -> tuple[str, ...]:
    for short in (backend.removesuffix(f".{family}"), backend.removeprefix(f"{family}.")):
        if short != backend:
            return (short,)
    return ()


def resource_name(backend: str) -> str:
    """Of its definition."""
    return f"resource_{backend.replace('.', '_')}"

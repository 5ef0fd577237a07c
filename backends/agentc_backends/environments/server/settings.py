"""Settings of an environment (`agentc.program.settings`): as its server receives them (`data_of`)
and as its identity states them (`rules_of`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from agentc.program.settings import declared_in

SETTINGS = "--settings"
"""The word before the file that a server reads them from."""
PRIVILEGED = "--privileged"
"""The word that has a server answer /privileged, for a lease that nobody plays on."""


def rules_of(settings: Any) -> dict[str, Any]:
    """What the identity of an environment says of its settings, as JSON values."""
    values = ((each, getattr(settings, each.name)) for each in declared_in(type(settings)))
    return {
        each.name: list(value) if isinstance(value, tuple) else value
        for each, value in values
        if each.about.rule and each.about.in_spec and each.about.identity == "semantic"
    }


def data_of(settings: Any, *, without: Collection[str] = ()) -> dict[str, Any]:
    """What a server is told, as JSON values; those of `without` keep their defaults. Mappings are
    lists of their pairs, for objects of JSON have no order and the first split is the first."""
    told = [each for each in declared_in(type(settings)) if each.about.served]
    values = {e.name: getattr(settings, e.name) for e in told if e.name not in without}
    return {
        each.name: _plain(values[each.name])
        for each in told
        if each.name in values
        if each.about.in_spec or values[each.name] != each.default
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return [[name, item] for name, item in value.items()]
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, Path) else value

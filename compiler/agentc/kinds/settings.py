"""The schema of a dataclass of settings (`agentc.program.settings`): the fields that a kind, an
environment or a backend's options accept.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from agentc.kinds.field import (
    REQUIRED,
    Field,
    boolean,
    choice,
    group,
    integer,
    number,
    secret,
    seed,
    string,
    strings,
)
from agentc.program.settings import Declared, declared_in


def fields_of(
    settings: type,
    *,
    groups: Mapping[str, tuple[Field, ...]] | None = None,
    choices: Mapping[str, tuple[str, ...]] | None = None,
    default: Any = None,
) -> tuple[Field, ...]:
    """What an entry of a spec may say. `groups` are fields of mappings whose keys the type does not
    name; `choices` are words of settings whose type does not name them. `default` is an instance
    with other defaults than the dataclass has."""
    found = []
    for each in declared_in(settings):
        if not each.about.in_spec:
            continue
        words = (choices or {}).get(each.name, each.choices)
        value = each.default if default is None else getattr(default, each.name)
        found.append(_field(each._replace(choices=words, default=value), groups or {}))
    return tuple(found)


def _field(each: Declared, groups: Mapping[str, tuple[Field, ...]]) -> Field:
    about, name = each.about, each.name
    limits = dict(about.limits)
    if limits.pop("secret", False):
        return secret(name, about.doc)
    if limits.pop("seed", False):
        return seed(name, about.doc, each.default)
    schema = limits.pop("schema", None)
    default = REQUIRED if each.default is dataclasses.MISSING else each.default
    made: Field
    if schema is not None:
        plain = list(default) if isinstance(default, tuple) else default
        made = Field(name=name, schema=schema, doc=about.doc, default=plain)
    elif each.is_group:
        fields = fields_of(each.kind, default=each.default)
        made = group(name, about.doc, fields, nullable=each.nullable)
    elif name in groups:
        made = group(name, about.doc, groups[name], nullable=each.nullable)
    elif each.choices:
        made = choice(name, about.doc, each.choices, default)
    elif each.kind is bool:
        made = boolean(name, about.doc, each.default)
    elif each.kind is tuple:
        made = strings(name, about.doc, each.default, **limits)
    elif each.kind in _MAKERS:
        made = _MAKERS[each.kind](name, about.doc, default, nullable=each.nullable, **limits)
    else:
        made = Field(name=name, schema={"type": "object"}, doc=about.doc, default=default)
    return dataclasses.replace(made, identity=about.identity)


_MAKERS: Mapping[type, Any] = {int: integer, float: number, str: string}

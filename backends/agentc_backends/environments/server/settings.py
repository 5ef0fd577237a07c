"""Settings of an environment, declared once: a frozen dataclass whose fields are `setting`s.

Its types and defaults are those of the spec language too (`../declaration.py` makes its fields).
A plan carries the settings as data (`data_of`), which the program of the environment reads as it is
(`settings_from`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import MISSING, dataclass
from functools import lru_cache
from pathlib import Path
from types import UnionType
from typing import Any, Literal, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

S = TypeVar("S")
SETTINGS = "--settings"
"""The word before the file that a server reads them from."""
PRIVILEGED = "--privileged"
"""The word that has a server answer /privileged, for a lease that nobody plays on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What a setting's type and default do not say.

    `limits` are keywords of `agentc.kinds.field` (minimum, above, pattern), or say that it is a
    `seed` or a `secret`. `rule`: it decides texts or rewards and shows in no digest, so `rules_of`
    tells it. What is not `served` reaches the server in another way, or not at all; what is not
    `in_spec` is the program's alone. What came `later` is told only where it is not the default,
    so that worlds and plans of before stay what they were. `null_was` is what these wrote for null.
    """

    doc: str
    limits: Mapping[str, Any]
    identity: Literal["semantic", "placement"] = "semantic"
    rule: bool = True
    served: bool = True
    in_spec: bool = True
    later: bool = False
    null_was: int | None = None


class Declared(NamedTuple):
    """A field of a dataclass of settings; `choices` of a closed list of words, else empty."""

    name: str
    kind: type
    nullable: bool
    choices: tuple[str, ...]
    default: Any
    about: About


def setting(
    doc: str,
    default: Any = MISSING,
    *,
    identity: Literal["semantic", "placement"] = "semantic",
    rule: bool = True,
    served: bool = True,
    in_spec: bool = True,
    later: bool = False,
    null_was: int | None = None,
    **limits: Any,
) -> Any:
    """The default of a field of settings: of `int`, `float`, `bool`, `str`, `Path`, a `Literal` of
    words, `tuple[str, ...]` or a mapping (JSON), all but the last two also with `| None`."""
    about = About(
        doc=doc,
        limits=limits,
        identity=identity,
        rule=rule,
        served=served,
        in_spec=in_spec,
        later=later,
        null_was=null_was,
    )
    metadata = {"about": about}
    if isinstance(default, Mapping):
        return dataclasses.field(default_factory=lambda: dict(default), metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def declared_in(settings: type) -> tuple[Declared, ...]:
    """In the order of the spec language's reference."""
    return _declared_in(settings)


@lru_cache
def _declared_in(settings: type) -> tuple[Declared, ...]:
    found = []
    hints = get_type_hints(settings)
    for field in dataclasses.fields(settings):
        hint, nullable = hints[field.name], False
        if isinstance(hint, UnionType):
            [hint] = (part for part in get_args(hint) if part is not type(None))
            nullable = True
        kind, choices = get_origin(hint) or hint, ()
        if kind is Literal:
            kind, choices = str, get_args(hint)
        made = field.default_factory
        default = field.default if made is MISSING else made()
        about = field.metadata["about"]
        found.append(Declared(field.name, kind, nullable, choices, default, about))
    return tuple(found)


def rules_of(settings: Any) -> dict[str, Any]:
    """What the identity of an environment says of its settings, as JSON values."""
    values = ((each, getattr(settings, each.name)) for each in declared_in(type(settings)))
    return {
        each.name: list(value) if isinstance(value, tuple) else value
        for each, value in values
        if each.about.rule and each.about.in_spec and each.about.identity == "semantic"
        if not each.about.later or value != each.default
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
        if (each.about.in_spec and not each.about.later) or values[each.name] != each.default
    }


def settings_from(settings: type[S], data: Mapping[str, Any]) -> S:
    """The settings that `data_of` wrote. Raises ValueError, for values beyond their limits too."""
    known = {each.name: each for each in declared_in(settings) if each.about.served}
    for name in data:
        if name not in known:
            raise ValueError(f"no setting is called {name!r}; expected {', '.join(known)}")
    for name, each in known.items():
        if each.default is MISSING and name not in data:
            raise ValueError(f"the setting {name!r} is missing: {each.about.doc}")
    return settings_with(settings, {n: _read(known[n], value) for n, value in data.items()})


def settings_with(settings: type[S], values: Mapping[str, Any]) -> S:
    """The settings with values of the right types. Raises ValueError for one beyond the limits that
    its field declares."""
    for each in declared_in(settings):
        value, limits = values.get(each.name), each.about.limits
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            continue
        if each.nullable and value == each.about.null_was:
            values = {**values, each.name: None}
            continue
        least, most, above = (limits.get(name) for name in ("minimum", "maximum", "above"))
        if least is not None and value < least:
            raise ValueError(f"the setting {each.name!r} is {value!r}; expected {least} or more")
        if most is not None and value > most:
            raise ValueError(f"the setting {each.name!r} is {value!r}; expected {most} at most")
        if above is not None and value <= above:
            raise ValueError(f"the setting {each.name!r} is {value!r}; expected more than {above}")
    return settings(**values)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return [[name, item] for name, item in value.items()]
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, Path) else value


def _read(each: Declared, value: Any) -> Any:
    if value is None and each.nullable:
        return None
    kind: type = type(value)
    if each.kind is Path and kind is str:
        return Path(value)
    if each.kind is float and kind is int:
        return float(value)
    if each.kind is tuple and kind is list:
        return tuple(value)
    if each.kind in (dict, Mapping) and kind in (list, dict):
        return dict(value)
    if kind is not each.kind or (each.choices and value not in each.choices):
        expected = " or ".join(map(repr, each.choices)) or f"a value of type {each.kind.__name__}"
        raise ValueError(f"the setting {each.name!r} is {value!r}; expected {expected}")
    return value

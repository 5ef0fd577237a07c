"""Settings, each declared once: the fields of a frozen dataclass, each a `setting`.

The same class is the schema of what a spec may write (`agentc.kinds.settings`), what lowering reads
(`OptionView.config_of` in `agentc.backend_api.view`), and what a program finds in its job file
(`settings_from`). Types are those of the dataclass.
"""

from __future__ import annotations

import dataclasses
import operator
import types
from dataclasses import MISSING, dataclass
from functools import lru_cache
from pathlib import Path
from typing import (
    Any,
    Callable,
    Dict,
    Literal,
    Mapping,
    NamedTuple,
    Tuple,
    Type,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

S = TypeVar("S")


@dataclass(frozen=True)
class Condition:
    """When a setting has an effect: if the setting `name` beside it has one of `values` (any that
    is true where none is named; of a list, if one of them is in it), or, with `unless`, none of
    them; or if the stage has the input `role`, or, with `unless`, has it not. `because` tells the
    user why the setting has no effect otherwise; in it, `{value}` is the value of `name`."""

    because: str
    name: str = ""
    values: Tuple[Any, ...] = ()
    unless: bool = False
    role: str = ""

    def holds(self, value: Any) -> bool:
        """Whether it does, given the value of the setting `name`, or the inputs of the role."""
        items = value if isinstance(value, (list, tuple)) else [value]
        found = any(item in self.values for item in items) if self.values else bool(value)
        return found != self.unless


def only_with(name: str, *values: Any, because: str) -> Condition:
    """In effect where the setting `name` of the same group has one of these values; without
    values: one that is neither null, false, zero nor empty."""
    return Condition(because=because, name=name, values=values)


def unless(name: str, *values: Any, because: str) -> Condition:
    """In effect except where the setting `name` of the same group has one of these values."""
    return Condition(because=because, name=name, values=values, unless=True)


def only_with_input(role: str, *, because: str) -> Condition:
    """In effect where the stage has the input `role`."""
    return Condition(because=because, role=role)


def without_input(role: str, *, because: str) -> Condition:
    """In effect where the stage lacks the input `role`."""
    return Condition(because=because, role=role, unless=True)


@dataclass(frozen=True)
class About:
    """What a setting's type and default do not say.

    `limits` are keywords of `agentc.kinds.field` (minimum, above, pattern), or say that it is a
    `seed` or a `secret`. It has an effect only where all of `only_if` hold. For an environment:
    `rule`, it decides texts or rewards and shows in no digest; what is not `served` reaches the
    server in another way, or not at all; what is not `in_spec` is the program's alone.
    """

    doc: str
    limits: Mapping[str, Any]
    identity: Literal["semantic", "placement", "metadata"] = "semantic"
    only_if: Tuple[Condition, ...] = ()
    rule: bool = True
    served: bool = True
    in_spec: bool = True


PLAIN = About(doc="", limits={}, in_spec=False)


class Declared(NamedTuple):
    """A field of a dataclass of settings. `kind` is the type without `| None`, and the dataclass of
    a nested group; `choices` are the words of a closed list, else empty; `default` is MISSING where
    there is none. `about` is PLAIN of a field that is no `setting` and the program's alone."""

    name: str
    kind: Type[Any]
    nullable: bool
    choices: Tuple[str, ...]
    default: Any
    about: About

    @property
    def is_group(self) -> bool:
        """Whether it is a nested mapping with known keys."""
        return dataclasses.is_dataclass(self.kind)


def setting(
    doc: str,
    default: Any = MISSING,
    *,
    identity: Literal["semantic", "placement", "metadata"] = "semantic",
    only_if: Union[Condition, Tuple[Condition, ...]] = (),
    rule: bool = True,
    served: bool = True,
    in_spec: bool = True,
    **limits: Any,
) -> Any:
    """The default of a field of settings. Its type is `int`, `float`, `bool`, `str`, `Path`, a
    `Literal` of words, a tuple, a mapping (JSON), or another dataclass of settings, whose instance
    `default` says what the group's settings are by default. Any may be `| None`."""
    about = About(
        doc=doc,
        limits=limits,
        identity=identity,
        only_if=(only_if,) if isinstance(only_if, Condition) else only_if,
        rule=rule,
        served=served,
        in_spec=in_spec,
    )
    metadata = {"about": about}
    if isinstance(default, Mapping):
        values = dict(default)
        return dataclasses.field(default_factory=lambda: dict(values), metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def declared_in(settings: type) -> Tuple[Declared, ...]:
    """The fields of a dataclass, in the order of the spec language's reference."""
    return _declared_in(settings)


@lru_cache(maxsize=None)  # type hints are evaluated once for each class
def _declared_in(settings: type) -> Tuple[Declared, ...]:
    declared = []
    hints = get_type_hints(settings)
    for field in dataclasses.fields(settings):
        hint, nullable = hints[field.name], False
        if get_origin(hint) in (Union, getattr(types, "UnionType", Union)):
            parts = [part for part in get_args(hint) if part is not type(None)]
            nullable = len(parts) < len(get_args(hint))
            hint = parts[0] if len(parts) == 1 else object
        kind, choices = get_origin(hint) or hint, ()
        if kind is Literal:
            kind, choices = str, get_args(hint)
        default = field.default
        if default is MISSING and field.default_factory is not MISSING:
            default = field.default_factory()
        about = field.metadata.get("about", PLAIN)
        declared.append(Declared(field.name, kind, nullable, choices, default, about))
    return tuple(declared)


def settings_from(settings: Type[S], data: Mapping[str, Any]) -> S:
    """The settings that a plan carries, as JSON values. A setting without an effect is left out of
    a plan, and keeps its default. Raises ValueError naming a setting that is unknown, missing, of a
    wrong type or beyond its limits."""
    known = {each.name: each for each in declared_in(settings) if each.about.served}
    for name in data:
        if name not in known:
            raise ValueError("no setting is called %r; expected %s" % (name, ", ".join(known)))
    for name, each in known.items():
        if each.default is MISSING and name not in data:
            doc = each.about.doc
            raise ValueError("the setting %r is missing%s" % (name, doc and ": " + doc))
    return settings_with(settings, {n: _read(known[n], value) for n, value in data.items()})


def settings_with(settings: Type[S], values: Mapping[str, Any]) -> S:
    """The settings with values of the right types. Raises ValueError for one beyond the limits that
    its field declares."""
    for each in declared_in(settings):
        value = values.get(each.name)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            continue
        for limit, holds, words in _LIMITS:
            bound = each.about.limits.get(limit)
            if bound is not None and not holds(value, bound):
                expected = words % bound
                raise ValueError("the setting %r is %r; expected %s" % (each.name, value, expected))
    return settings(**values)


def _read(each: Declared, value: Any) -> Any:
    if value is None and each.nullable:
        return None
    if each.about is PLAIN and not each.is_group:
        return tuple(value) if each.kind is tuple and isinstance(value, list) else value
    kind = type(value)
    if each.is_group and kind is dict:
        return settings_from(each.kind, value)
    if each.kind is Path and kind is str:
        return Path(value)
    if each.kind is float and kind is int:
        return float(value)
    if each.kind is tuple and kind is list:
        return tuple(value)
    if each.kind not in _SCALARS and kind in (list, dict):
        pairs: Dict[str, Any] = dict(value)
        return pairs
    if kind is not each.kind or (each.choices and value not in each.choices):
        words = " or ".join(map(repr, each.choices))
        expected = words or "a value of type %s" % each.kind.__name__
        raise ValueError("the setting %r is %r; expected %s" % (each.name, value, expected))
    return value


_LIMITS: Tuple[Tuple[str, Callable[[Any, Any], bool], str], ...] = (
    ("minimum", operator.ge, "%s or more"),
    ("maximum", operator.le, "%s at most"),
    ("above", operator.gt, "more than %s"),
    ("below", operator.lt, "less than %s"),
)
_SCALARS = (bool, int, float, str, Path, tuple)

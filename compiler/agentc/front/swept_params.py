"""Params that a matrix declares by sweeping over them: `matrix: {seed: [0, 1]}` is enough."""

from __future__ import annotations

from dataclasses import replace

from agentc.diagnostics.suggest import did_you_mean
from agentc.front.params import EXCLUDE
from agentc.schema import language
from agentc.schema.keys import is_name
from agentc.source.scalars import plain_value
from agentc.source.tree import Entry, Mapping, Scalar, Sequence
from agentc.syntax.nodes import ParamDecl, Spec

_TYPE_OF = {int: "int", float: "float", bool: "bool", str: "str"}


def with_swept_params(spec: Spec) -> Spec:
    """The spec with a param for each axis of its matrix that declares none, whose default is the
    first value. Not for a name that something else has, or that may be a misspelt param's."""
    table = spec.matrix
    others = {*spec.models, *spec.stages, *spec.environments, *spec.servers, *spec.prompts}
    others |= {*language.RESERVED_NAMES, EXCLUDE}
    if not isinstance(table, Mapping) or "params" in spec.broken:
        return spec
    found: dict[str, ParamDecl] = {}
    for entry in table.entries:
        name, values = entry.key, entry.value
        if name.text in spec.params or name.text in others or not is_name(name.text):
            continue
        if did_you_mean(name.text, [*spec.params, EXCLUDE]) or not isinstance(values, Sequence):
            continue
        json = [plain_value(item) for item in values.items if isinstance(item, Scalar)]
        kinds = {type(value) for value in json}
        if len(json) != len(values.items) or not json or not kinds <= set(_TYPE_OF):
            continue
        if len(kinds) > 1 and kinds != {int, float}:
            continue
        kind = _TYPE_OF[float if float in kinds else kinds.pop()]
        settings = {"type": Scalar(kind, False, name.span), "default": values.items[0]}
        entries = {
            key: Entry(Scalar(key, False, name.span), node) for key, node in settings.items()
        }
        found[name.text] = ParamDecl(name=name, settings=entries)
    return replace(spec, params={**spec.params, **found})

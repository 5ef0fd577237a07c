"""What a claim needs of its experiment (`needs:`): settings without which the paper's number is of
something else, such as the published tasks. Where they differ the claim is compiled, and the judge
shows the numbers without a verdict. Neighbour: `resolve_claims.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from agentc.backend_api import EnvironmentBackend
from agentc.backend_api.view import ABSENT, effective, find_setting
from agentc.diagnostics.span import Span
from agentc.diagnostics.suggest import did_you_mean, listed
from agentc.front.claim_reading import ClaimReading, WrittenClaim
from agentc.kinds.field import Json
from agentc.schema.coerce import Coercion, Failed
from agentc.source.tree import Entry
from agentc.source.tree import Mapping as MappingNode

_OTHER = "not"
"""`{not: VALUE}`: any value but this one."""
_FORMS = "`environment.SETTING` or `params.NAME`"


@dataclass(frozen=True, slots=True)
class _Known:
    """A value that a condition is about, as messages call it, with the schema of such values."""

    name: str
    value: Json
    schema: dict[str, Json]


def unmet_needs(written: WrittenClaim, stage: str, reading: ClaimReading) -> str | None:
    """Which conditions of a claim do not hold, in words; None where all do. Conditions that are
    wrong are reported."""
    entry = written.node.find("needs")
    if entry is None or not isinstance(entry.value, MappingNode):
        return None
    found = (_unmet(each, stage, reading) for each in entry.value.entries)
    return "; ".join(text for text in found if text) or None


def _unmet(entry: Entry, stage: str, reading: ClaimReading) -> str | None:
    """Why one condition does not hold, or None."""
    head, _, name = entry.key.text.partition(".")
    if head == "environment" and name:
        known = _setting(name, entry.key.span, stage, reading)
    elif head == "params" and name:
        known = _param(name, entry.key.span, reading)
    else:
        known = _refused(
            entry.key.span,
            f"`{entry.key.text}` is no condition",
            _FORMS,
            reading,
            None if name else f"write `environment.{head}` if it is a setting of the environment",
        )
    if known is None:
        return None
    node, other = entry.value, False
    if isinstance(node, MappingNode):
        inner = node.find(_OTHER)
        if inner is None or len(node.entries) != 1:
            message = f"`{entry.key.text}` of `needs` takes a value"
            _refused(node.span, message, f"a value, or `{{{_OTHER}: VALUE}}`", reading)
            return None
        node, other = inner.value, True
    wanted = Coercion(reading.sink).value(node, known.schema, entry.key.text)
    if isinstance(wanted, Failed) or (known.value == wanted) != other:
        return None
    needed = "another value" if other else _shown(wanted)
    return f"{known.name} is {_shown(known.value)}, and the claim needs {needed}"


def _setting(name: str, span: Span, stage: str, reading: ClaimReading) -> _Known | None:
    """A setting of the environment that a stage plays in, by default or as the spec has it."""
    bound = reading.stages.get(stage)
    if bound is None:
        return None  # what is wrong with it has been reported
    used = bound.uses.get("environment")
    if used is None:
        return _refused(span, f"`{stage}` plays in no environment", "a param", reading)
    entry = reading.environments.get(used)
    backend = None if entry is None else reading.table.backends.get(entry.backend)
    if entry is None or not isinstance(backend, EnvironmentBackend):
        return None
    setting = find_setting(backend.fields, name)
    if setting is None:
        return _unknown(span, name, [each.name for each in backend.fields], used, reading)
    given = entry.fields.get(name)
    value = effective(setting, lambda _: ABSENT) if given is None else given.json
    return _Known(f"`{name}` of `{used}`", value, dict(setting.declared.schema))


def _param(name: str, span: Span, reading: ClaimReading) -> _Known | None:
    if name not in reading.params:
        return _unknown(span, name, list(reading.params), "params", reading)
    return _Known(f"the param `{name}`", reading.params[name], {})


def _unknown(
    span: Span, name: str, names: list[str], place: str, reading: ClaimReading
) -> _Known | None:
    expected = f"one of {listed(sorted(names))}" if names else "a param of the spec"
    reading.sink.error(
        "AGC450",
        f"`{place}` has no `{name}`",
        span,
        expected=expected,
        fix=did_you_mean(name, names),
    )
    return None


def _refused(
    span: Span, message: str, expected: str, reading: ClaimReading, fix: str | None = None
) -> _Known | None:
    reading.sink.error("AGC450", message, span, expected=expected, fix=fix)
    return None


def _shown(value: Json) -> str:
    return "not set" if value is None else f"`{value}`"

"""The promise about one setting: flipping it changes what the job is told, and its key if it is
semantic; or it is refused with the names of backends that honour it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentc.conformance.bench import LoweringOutcome
from agentc.conformance.check import Fault, Skipped, demand
from agentc.conformance.subject import BackendUnderTest
from agentc.conformance.values import leaves, value_at, with_value
from agentc.kinds.field import Field

UNREAD, REFUSED = "AGC602", "AGC603"


def check_setting(subject: BackendUnderTest, path: str, field: Field, identity: str) -> None:
    """Flip one setting. One that only matters together with another is flipped there as well."""
    start = subject.start
    first = _first_flip(subject, field, path, start)
    before = subject.lower(start)
    if before.codes or not before.jobs:
        raise Skipped("there is nothing to compare it with: see the check `lowers`")
    after = subject.lower(with_value(start, path, first))
    _no_failure(path, first, after)
    if UNREAD in after.codes:
        _check_unread(subject, path, after)
        context = _find_context(subject, path, field)
        if context is None:
            return  # nothing here reads it, and the compiler says so
        start, before = context, subject.lower(context)
    accepted = False
    chosen: list[Any] = []
    for value in subject.flips(field, path, start):
        after = subject.lower(with_value(start, path, value))
        _no_failure(path, value, after)
        if after.codes:
            _check_refusal(path, value, after)
            continue
        accepted = True
        same = after.written == before.written
        if same and not chosen and _is_automatic_switch(field, value_at(start, path, field)):
            # One of its two values may be what the backend chooses without it.
            chosen.append(value)
            continue
        _check_effect(path, value, identity, before, after)
    demand(
        accepted or REFUSED in after.codes,
        f"no value of `{path}` is accepted and none is refused by name ({after.complaints()}); "
        "if it needs a value that cannot be guessed, give the kit one to try",
    )


def _is_automatic_switch(field: Field, value: Any) -> bool:
    types = field.schema.get("type")
    return value is None and "boolean" in (types if isinstance(types, list) else [types])


def _first_flip(
    subject: BackendUnderTest, field: Field, path: str, values: Mapping[str, Any]
) -> Any:
    for value in subject.flips(field, path, values):
        return value
    raise Fault(
        f"`{path}` has no second value by its schema; a setting that cannot be changed is none "
        "(or give the kit a value to try)"
    )


def _no_failure(path: str, value: Any, outcome: LoweringOutcome) -> None:
    demand(
        "AGC605" not in outcome.codes,
        f"lowering raises with {path}={value!r} ({outcome.complaints()}); "
        "refuse such a value with `view.refuse`",
    )


def _check_unread(subject: BackendUnderTest, path: str, after: LoweringOutcome) -> None:
    """What the compiler says of a setting that is not read names it, and who would honour it."""
    message = next(found for found in after.diagnostics if found.code == UNREAD)
    demand(f"`{path}`" in message.message, f"the complaint does not name `{path}`: {message}")
    note = " ".join(message.notes)
    if not note:  # then the message gives the reason, which lies in another setting
        demand("does not read it here" not in message.message, f"no reason is given: {message}")
        return
    named = any(f"`{name}`" in note for name in subject.rivals()) or "no other" in note
    demand(named, f"the complaint names no backend that would honour `{path}`: {note}")


def _check_refusal(path: str, value: Any, after: LoweringOutcome) -> None:
    demand(
        after.codes <= {UNREAD, REFUSED},
        f"{path}={value!r} gives {after.complaints()}",
    )


def _check_effect(
    path: str, value: Any, identity: str, before: LoweringOutcome, after: LoweringOutcome
) -> None:
    demand(
        after.written != before.written,
        f"{path}={value!r} is read, but changes nothing that the job is told; put it into the "
        "job's config, program or lease, or do not read it",
    )
    if identity == "semantic":
        demand(
            after.keys[-1:] != before.keys[-1:],
            f"{path}={value!r} changes what the job is told, and not its key: it was read through "
            "another view than the job's `view` (or lease `identity`)",
        )
    else:
        demand(
            after.keys == before.keys,
            f"{path} is declared {identity}, and {value!r} changes a key: something that is not "
            "declared so depends on it",
        )


def _find_context(subject: BackendUnderTest, path: str, field: Field) -> dict[str, Any] | None:
    """Values of one other setting under which this one is read."""
    start = subject.start
    for other, other_field, _ in leaves(subject.table):
        if other == path:
            continue
        for value in subject.flips(other_field, other, start):
            context = with_value(start, other, value)
            if subject.lower(context).codes:
                continue
            flipped = with_value(context, path, _first_flip(subject, field, path, context))
            if not subject.lower(flipped).codes:
                return context
    return None

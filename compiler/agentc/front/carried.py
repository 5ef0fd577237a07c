"""What the carried names of a repeat stand for: `from` in round 1, then what `next` names in the
round before. A list of both gathers: `{from: [], next: [past, pairs]}` is the pairs of all rounds
before. Part of `expand_repeat.py`; `stage_references.py` looks the names up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from agentc.diagnostics.sink import Sink
from agentc.diagnostics.suggest import did_you_mean, listed
from agentc.source.tree import Node, described, items_of, text_of
from agentc.syntax.nodes import CarryDecl, RepeatDecl, Spec

Carried: TypeAlias = "tuple[str | Node, ...]"
"""Stages of rounds before, by id, and what `from` says, which is resolved outside of the repeat."""


def carried_into(
    declared: RepeatDecl, number: int, before: Mapping[str, Carried | None]
) -> dict[str, Carried | None]:
    """What each carried name stands for in round `number`, by what it did in the round before; a
    stage that is gathered on two ways counts once. None for one whose `next` is broken."""
    if number == 1:
        return {carry.name.text: (carry.start,) for carry in declared.carry}
    return {
        carry.name.text: _handed_on(declared, number - 1, carry, before) for carry in declared.carry
    }


def _handed_on(
    declared: RepeatDecl, number: int, carry: CarryDecl, carried: Mapping[str, Carried | None]
) -> Carried | None:
    """What `next` names in round `number`."""
    found: dict[str | int, str | Node] = {}
    for item in items_of(carry.next)[0]:
        name = text_of(item)
        if name in declared.stages:
            stage = f"{declared.name.text}.{number}.{name}"
            found[stage] = stage
            continue
        parts = carried.get(name) if name is not None else None
        if parts is None:
            return None
        # The same `from`, come on two ways, is one node.
        found.update((part if isinstance(part, str) else id(part), part) for part in parts)
    return tuple(found.values())


def check_carry(spec: Spec, declared: RepeatDecl, sink: Sink) -> None:
    """Report carried names that are taken, and what cannot be handed on."""
    names = [carry.name.text for carry in declared.carry]
    for carry in declared.carry:
        name = carry.name.text
        taken = name in declared.stages or name in spec.stages or name in spec.models
        if taken:
            sink.error(
                "AGC207",
                f"the carried name `{name}` is the name of a stage or model already",
                carry.name.span,
                fix="choose another name, such as `policy`",
            )
        items = items_of(carry.next)[0]
        for item in items:
            _check_next(item, name, declared, names, sink)
        if {text_of(item) for item in items} <= {name} and not taken:
            found = "is empty" if not items else f"hands on `{name}` alone"
            sink.error(
                "AGC409",
                f"`next` of carried `{name}` {found}, so that no round gives it anything",
                carry.next.span,
                expected=_possible(declared),
                fix=f"write `next: [{name}, STAGE]` to gather a stage of every round",
            )


def _check_next(
    node: Node, name: str, declared: RepeatDecl, carried: Iterable[str], sink: Sink
) -> None:
    text, known = text_of(node), [*declared.stages, *carried]
    if text in known or declared.broken:
        return  # a stage of it may stand under a key that is misspelt
    sink.error(
        "AGC409",
        f"`next` of carried `{name}` cannot be {described(node)}",
        node.span,
        expected=_possible(declared),
        fix=None if text is None else did_you_mean(text, known),
    )


def _possible(declared: RepeatDecl) -> str:
    return f"a stage of this repeat: {listed(declared.stages)}"

"""expand_repeat: unroll rounds; every stage of every round becomes a stage of its own.

Requires: a structured spec and the values of its params.
Ensures: stages with ids (`eto.2.dpo`) in written order, each with the names that it can see.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from agentc.diagnostics.sink import Sink
from agentc.diagnostics.suggest import did_you_mean, listed
from agentc.front.expressions import Evaluator
from agentc.kinds.field import Json
from agentc.schema import language
from agentc.schema.coerce import Coercion
from agentc.source.scalars import read_integer
from agentc.source.tree import Computed, Entry, Node, Scalar, Sequence, described, items_of, text_of
from agentc.source.tree import Mapping as MappingNode
from agentc.syntax.nodes import CarryDecl, RepeatDecl, Spec, StageDecl

MOST_STAGES = 100_000
MOST_CARRIED = 1_000_000
"""Stages that the carried names of a repeat may stand for, in all stages of all rounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unrolled:
    """One stage of one round, or a stage outside of repeats.

    `names` are what it can refer to besides the names of the top level, with the stage that each
    means: the stages of its round. `carried` are the carried names, with what each stands for (None
    for one whose `next` is broken, from round 2 on). `fixed`: the number of rounds is written as
    such in the repeat itself.
    """

    id: str
    declared: StageDecl
    scope: Mapping[str, Json]
    names: Mapping[str, str] = field(default_factory=dict)
    carried: Mapping[str, Carried | None] = field(default_factory=dict)
    round: int | None = None
    repeat: str | None = None
    fixed: bool = False
    steps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """What was unrolled: the stages, and the number of rounds of each repeat; `most` is what the
    spec says of it, which is more where the rounds have stopped."""

    stages: tuple[Unrolled, ...]
    counts: Mapping[str, int]
    most: Mapping[str, int]


def expand_repeat(
    spec: Spec,
    scope: Mapping[str, Json],
    evaluator: Evaluator,
    sink: Sink,
    steps: tuple[str, ...] = (),
    ends: Mapping[str, int] | None = None,
) -> Rounds:
    """Unroll every repeat. One whose number of rounds is unknown is unrolled once, so that its
    stages are still checked. `steps` say which cell of the matrix this is, `ends` after which
    round a repeat has stopped in it."""
    stages: list[Unrolled] = []
    counts: dict[str, int] = {}
    most_rounds: dict[str, int] = {}
    for name, model in spec.models.items():
        stages.append(Unrolled(id=name, declared=model, scope=scope, steps=steps))
    for name, declared in spec.stages.items():
        if isinstance(declared, StageDecl):
            stages.append(Unrolled(id=name, declared=declared, scope=scope, steps=steps))
            continue
        count = most_rounds[name] = _count(declared, scope, evaluator, sink)
        count = min(count, (ends or {}).get(name, count))
        if len(stages) + count * len(declared.stages) > MOST_STAGES:
            sink.error(
                "AGC105",
                f"repeat `{name}` gives more than {MOST_STAGES} stages",
                declared.name.span,
            )
            count = most_rounds[name] = 1
        counts[name] = count
        check_carry(spec, declared, sink)
        fixed = is_fixed(declared, count)
        carried: dict[str, Carried | None] = {}
        most = MOST_CARRIED
        for number in range(1, count + 1):
            carried = carried_into(declared, number, carried)
            most -= len(declared.stages) * sum(len(parts or ()) for parts in carried.values())
            if most < 0:
                sink.error(
                    "AGC105",
                    f"what repeat `{name}` carries represents more than {MOST_CARRIED} stages",
                    declared.name.span,
                    notes=("a list that is carried on grows with every round",),
                    fix="lower `n`",
                )
                break
            stages += _round(declared, number, scope, steps, carried, fixed=fixed)
    return Rounds(stages=tuple(stages), counts=counts, most=most_rounds)


def value_of_round(
    entry: Entry, path: str, unrolled: Unrolled, rounds: int, evaluator: Evaluator, sink: Sink
) -> Node | None:
    """What `per_round: [...]` means in one of so many rounds, computed; None when there is nothing
    (reported)."""
    if unrolled.round is None:
        sink.error(
            "AGC407",
            f"`{path}` is given per round, but the stage is in no repeat",
            entry.key.span,
            fix="give one value",
        )
        return None
    values = evaluator.evaluate(entry.value, unrolled.scope, unrolled.steps)
    items: tuple[Node, ...]
    match values:
        case Sequence(items=items):
            pass
        case Computed(json=list(found)):
            items = tuple(Computed(item, values.span) for item in found)
        case Scalar() | MappingNode() | Computed():
            sink.error(
                "AGC203",
                f"`{path}.{language.PER_ROUND}` cannot be {described(values)}",
                values.span,
                expected="a list with a value for each round",
            )
            return None
        case _:
            return None
    if len(items) < rounds:
        missing = rounds - len(items)
        sink.error(
            "AGC408",
            f"`{path}` has {len(items)} value{'s' * (len(items) != 1)} for {rounds} rounds",
            entry.key.span,
            expected=f"{rounds} values; {missing} {'is' if missing == 1 else 'are'} missing",
            fix="repeat the last value if it is to stay",
        )
    if len(items) > rounds and unrolled.fixed:
        spare = len(items) - rounds
        unused = "one is" if spare == 1 else f"{spare} are"
        sink.warning(
            "AGC657",
            f"`{path}` has {len(items)} values for {rounds} round{'s' * (rounds != 1)}",
            entry.key.span,
            notes=(f"the last {unused} never used",),
            fix=f"remove {'it' if spare == 1 else 'them'}, or raise `n` of the repeat",
        )
    if unrolled.round > len(items):
        return None
    return items[unrolled.round - 1]


def _round(
    declared: RepeatDecl,
    number: int,
    scope: Mapping[str, Json],
    steps: tuple[str, ...],
    carried: Mapping[str, Carried | None],
    *,
    fixed: bool,
) -> Iterator[Unrolled]:
    repeat = declared.name.text
    names = {name: f"{repeat}.{number}.{name}" for name in declared.stages}
    for name, stage in declared.stages.items():
        yield Unrolled(
            id=f"{repeat}.{number}.{name}",
            declared=stage,
            scope={**scope, "round": number},
            names=names,
            carried=carried,
            round=number,
            repeat=repeat,
            fixed=fixed,
            steps=(f"round {number} of {repeat}", *steps),
        )


def is_fixed(declared: RepeatDecl, count: int) -> bool:
    """Whether `n` is written as that number between the repeat's name and its stages, rather than
    an expression, or a number from a template or a scale."""
    rounds, start = declared.rounds, declared.name.span
    if not isinstance(rounds, Scalar) or read_integer(rounds.text) != count:
        return False
    last = max((stage.span.line for stage in declared.stages.values()), default=start.line)
    return rounds.span.source is start.source and start.line <= rounds.span.line <= last


def _count(
    declared: RepeatDecl, scope: Mapping[str, Json], evaluator: Evaluator, sink: Sink
) -> int:
    if declared.rounds is None:
        return 1
    node = evaluator.evaluate(declared.rounds, scope)
    value = Coercion(sink).field(node, language.ROUNDS, f"{declared.name.text}.n")
    return value if isinstance(value, int) else 1


# What the carried names of a repeat stand for: `from` in round 1, then what `next` names in the
# round before. A list of both gathers: `{from: [], next: [past, pairs]}` is the pairs of all rounds
# before.

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
    found: dict[str | Node, None] = {}
    for item in items_of(carry.next)[0]:
        name = text_of(item)
        if name in declared.stages:
            found[f"{declared.name.text}.{number}.{name}"] = None
            continue
        parts = carried.get(name) if name is not None else None
        if parts is None:
            return None
        found.update(dict.fromkeys(parts))
    return tuple(found)


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
            found = "is empty" if not items else f"hands on only `{name}`"
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

"""expand_matrix: the cells of a sweep, one for each combination of values.

Requires: a structured spec.
Ensures: at least one cell; a cell maps swept params to the nodes of their values. A spec without
`matrix` has one cell that maps nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod

from agentc.diagnostics.sink import Sink
from agentc.diagnostics.suggest import did_you_mean, listed
from agentc.front.evaluate_params import evaluate_params
from agentc.front.expressions import Evaluator
from agentc.kinds.field import Json
from agentc.schema.coerce import as_json
from agentc.schema.keys import Place, as_mapping
from agentc.source.tree import Computed, Node, Sequence, Unknown, described, written
from agentc.source.tree import Mapping as MappingNode
from agentc.syntax.nodes import Spec

EXCLUDE = "exclude"
_MOST_CELLS = 10_000


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """One combination: `nodes` by param, and `index`, the position of each value on its axis."""

    nodes: Mapping[str, Node]
    index: tuple[int, ...] = ()


def expand_matrix(
    spec: Spec, given: Mapping[str, str], evaluator: Evaluator, sink: Sink
) -> tuple[Cell, ...]:
    """Cells in the order of the axes, the last one fastest. `-p name=value` takes its axis away:
    that param has the one value then."""
    if spec.matrix is None:
        return (Cell({}),)
    place = Place("matrix", "`matrix`")
    table = as_mapping(spec.matrix, place, sink, "a mapping of params to lists of values")
    axes: dict[str, tuple[Node, ...]] = {}
    keys = [] if table is None else [entry.key.text for entry in table.entries]
    unknown = {name: Unknown(spec.matrix.span) for name in keys if name in spec.params}
    scope = evaluate_params(spec, given, evaluator, sink, unknown)
    for entry in () if table is None else table.entries:
        name = entry.key.text
        if name == EXCLUDE and EXCLUDE not in spec.params:
            continue
        if name not in spec.params:
            sink.error(
                "AGC433",
                f"`matrix` sweeps over `{name}`, which is no param",
                entry.key.span,
                expected=f"one of {listed([*spec.params, EXCLUDE])}",
                fix=did_you_mean(name, [*spec.params, EXCLUDE])
                or f"declare `{name}` under `params:`",
            )
            continue
        values = _values(name, entry.value, scope, evaluator, sink)
        if values and name not in given:
            axes[name] = values
    count = prod(len(values) for values in axes.values())
    if count > _MOST_CELLS:
        sizes = " x ".join(str(len(values)) for values in axes.values())
        sink.error(
            "AGC105",
            f"the matrix has {count} cells ({sizes}); {_MOST_CELLS} are the most",
            spec.matrix.span,
        )
        return (Cell({name: values[0] for name, values in axes.items()}, (0,) * len(axes)),)
    excluded = _excluded(table, axes, given, evaluator, sink)
    cells = tuple(cell for cell in _product(axes) if not _matches(cell, excluded))
    if not cells:
        written_at = None if table is None else table.find(EXCLUDE)
        sink.error(
            "AGC434",
            "`exclude` removes every combination of the matrix",
            spec.matrix.span if written_at is None else written_at.key.span,
            fix="leave at least one; to run nothing of a param, take it out of the matrix",
        )
        return tuple(_product(axes))[:1]
    return cells


def _product(axes: Mapping[str, tuple[Node, ...]]) -> Iterator[Cell]:
    for chosen in product(*(enumerate(values) for values in axes.values())):
        nodes = {name: node for name, (_, node) in zip(axes, chosen, strict=True)}
        yield Cell(nodes, tuple(at for at, _ in chosen))


def _values(
    name: str, node: Node, scope: Mapping[str, Json], evaluator: Evaluator, sink: Sink
) -> tuple[Node, ...]:
    before = evaluator.sink.count
    found = evaluator.evaluate(node, scope)
    if isinstance(found, Unknown) and evaluator.sink.count > before:
        return ()
    items: tuple[Node, ...] = ()
    match found:
        case Sequence(items=items) if items:
            pass
        case Computed(json=list(values)) if values:
            items = tuple(Computed(value, found.span) for value in values)
        case _:
            swept = isinstance(found, Unknown)
            wrong = "depend on a param that is swept" if swept else f"be {described(found)}"
            if as_json(found) in (None, []) and not swept:
                wrong = "be empty"
            sink.error(
                "AGC203",
                f"`matrix.{name}` cannot {wrong}",
                found.span,
                expected="a list with at least one value",
                fix=_as_list(found),
            )
            return ()
    seen: list[Json] = []
    for item in items:
        value = as_json(item)
        if value in seen:
            sink.error("AGC435", f"`matrix.{name}` has {described(item)} twice", item.span)
        seen.append(value)
    return items


def _as_list(node: Node) -> str | None:
    value = as_json(node)
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    several = (
        f', or "{{{{ range({value}) }}}}" for 0 to {value - 1}'
        if (isinstance(value, int) and 1 < value <= _MOST_CELLS)
        else ""
    )
    return f"write `[{written(value)}]`{several}"


def _excluded(
    table: MappingNode | None,
    axes: Mapping[str, tuple[Node, ...]],
    given: Mapping[str, str],
    evaluator: Evaluator,
    sink: Sink,
) -> list[dict[str, Json]]:
    entry = None if table is None else table.find(EXCLUDE)
    if entry is None:
        return []
    if not isinstance(entry.value, Sequence):
        sink.error(
            "AGC203",
            f"`matrix.{EXCLUDE}` cannot be {described(entry.value)}",
            entry.value.span,
            expected="a list of mappings, such as `[{seed: 1, model: small}]`",
        )
        return []
    found: list[dict[str, Json]] = []
    for item in entry.value.items:
        mapping = as_mapping(item, Place(EXCLUDE, f"an entry of `{EXCLUDE}`"), sink, "a mapping")
        wanted: dict[str, Json] = {}
        applies = True
        for each in () if mapping is None else mapping.entries:
            name = each.key.text
            if name not in axes:
                if name in given:
                    # The command line has fixed it, to this value or to another.
                    found_value = as_json(evaluator.evaluate(each.value, {}))
                    applies &= written(found_value) == given[name]
                else:
                    sink.error(
                        "AGC433",
                        f"`{EXCLUDE}` names `{name}`, over which the matrix does not sweep",
                        each.key.span,
                        expected=f"one of {listed(axes)}",
                        fix=did_you_mean(name, axes),
                    )
                continue
            value = as_json(evaluator.evaluate(each.value, {}))
            wanted[name] = value
            if value not in [as_json(node) for node in axes[name]]:
                sink.error(
                    "AGC433",
                    f"`matrix.{name}` has no value {described(each.value)} to exclude",
                    each.value.span,
                )
        if wanted and applies:
            found.append(wanted)
    return found


def _matches(cell: Cell, excluded: list[dict[str, Json]]) -> bool:
    return any(
        all(as_json(cell.nodes[name]) == value for name, value in wanted.items())
        for wanted in excluded
    )

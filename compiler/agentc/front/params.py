"""Params: the value of each, from `-p` or from its default, and the cells of a sweep.

expand_matrix requires a structured spec and ensures at least one cell; a cell maps swept params to
the nodes of their values. A spec without `matrix` has one cell that maps nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod

from agentc.diagnostics.diagnostic import Source, Span
from agentc.diagnostics.sink import Sink
from agentc.diagnostics.suggest import did_you_mean, listed
from agentc.front.expressions import MISSING, Evaluator
from agentc.kinds.field import Json
from agentc.plan.keys import canonical_text
from agentc.schema import language
from agentc.schema.coerce import Coercion, Failed, as_json
from agentc.schema.describe import describe
from agentc.schema.keys import Place, as_mapping
from agentc.schema.param_rules import param_rules
from agentc.source.load import load_text
from agentc.source.scalars import is_expression
from agentc.source.text_checks import (
    blanked,
    find_credentials,
    forbidden_in_values,
    strip_forbidden,
)
from agentc.source.tree import (
    Computed,
    Node,
    Scalar,
    Sequence,
    Unknown,
    described,
    shortened,
    written,
)
from agentc.source.tree import Mapping as MappingNode
from agentc.source.tree import Mapping as Table
from agentc.syntax.nodes import ParamDecl, Spec


def evaluate_params(
    spec: Spec,
    given: Mapping[str, str],
    evaluator: Evaluator,
    sink: Sink,
    swept: Mapping[str, Node] = {},
) -> dict[str, Json]:
    """Values by name, in declared order. A default may use the params declared above it; `swept`
    are values of one cell of the matrix, which come before defaults."""
    given = {name: _checked_text(name, text, sink) for name, text in given.items()}
    scope: dict[str, Json] = {}
    for name, declared in spec.params.items():
        evaluator.later = _unseen(name, spec, scope) if _computed(declared) else None
        if name in language.RESERVED_NAMES:
            sink.error(
                "AGC309",
                f"no param can be called `{name}`",
                declared.name.span,
                notes=("expressions use this word themselves",),
            )
        scope[name] = _value(declared, given.get(name), swept.get(name), scope, evaluator, sink)
    evaluator.later = None
    for name in given:
        if name not in spec.params:
            sink.error(
                "AGC306",
                f"the spec has no param `{name}`",
                expected=f"one of {listed(spec.params)}" if spec.params else None,
                fix=did_you_mean(name, spec.params),
            )
    return scope


def chosen_params(
    spec: Spec, given: Mapping[str, str], values: Mapping[str, Json]
) -> dict[str, Json]:
    """The params given with `-p` whose values are not what they would be without it: their default
    by the params above them. A param that is swept is chosen whatever it is given, since its axis
    goes. Reports nothing."""
    chosen: dict[str, Json] = {}
    axes = set()
    if isinstance(spec.matrix, Table):
        axes = {entry.key.text for entry in spec.matrix.entries}
    for name, declared in spec.params.items():
        if name not in given or name not in values:
            continue
        usual: Json = MISSING
        if "default" in declared.settings and name not in axes:
            usual = _value(declared, None, None, values, Evaluator(Sink()), Sink())
        if usual is MISSING or canonical_text(usual) != canonical_text(values[name]):
            chosen[name] = values[name]
    return chosen


def _unseen(name: str, spec: Spec, scope: Mapping[str, Json]) -> Callable[[str], str | None]:
    """Why the default of a param cannot use the params that have no value yet."""
    rule = "a default sees only the params above it"

    def why(other: str) -> str | None:
        if other == name:
            return f"the default of `{name}` uses `{name}` itself"
        if other not in spec.params or other in scope:
            return None
        return f"`{other}` is below `{name}`: {rule}"

    return why


def _computed(declared: ParamDecl) -> bool:
    default = declared.settings.get("default")
    return default is not None and not (
        isinstance(default.value, Scalar) and not is_expression(default.value.text)
    )


def _checked_text(name: str, text: str, sink: Sink) -> str:
    """The text of `-p name=text`, without what could not stand in a file either: it is recorded
    with the run."""
    whole = f"{name}={text}"
    credentials = find_credentials(whole)
    for found in credentials:
        sink.error(
            "AGC120",
            f"the value of `-p {shortened(name)}` looks like {found.what}",
            notes=("it is not shown here, but the shell's history and the process list have it",),
            fix="put it into an environment variable; settings that take a secret take its name",
        )
    forbidden = forbidden_in_values(text)
    if forbidden is not None:
        code, character = forbidden
        sink.error(code, f"the value of `-p {shortened(name)}` holds the {character}")
    start = len(name) + 1
    return strip_forbidden(blanked(whole, credentials)[start:])


def _value(
    declared: ParamDecl,
    given: str | None,
    swept: Node | None,
    scope: Mapping[str, Json],
    evaluator: Evaluator,
    sink: Sink,
) -> Json:
    name = declared.name.text
    rules = param_rules(declared, sink)
    if rules is None:
        return MISSING
    default = declared.settings.get("default")
    node: Node
    if given is not None:
        found = _from_command_line(name, given, rules, sink)
        if found is None:
            return MISSING
        node = found
    elif swept is not None:
        node = swept
    elif default is None:
        sink.error(
            "AGC305",
            f"param `{name}` has no value",
            declared.name.span,
            expected=describe(rules),
            fix=f"give one with `-p {name}=...`, or declare a `default`",
        )
        return MISSING
    else:
        node = evaluator.evaluate(default.value, scope)
    trial = Sink()
    value = Coercion(trial).value(node, rules, name)
    for found_wrong in trial.sorted():
        sink.error(
            "AGC307",
            f"param `{name}` cannot be {described(node)}",
            found_wrong.span,
            expected=found_wrong.expected,
            notes=found_wrong.notes,
            fix=found_wrong.fix,
        )
    return MISSING if isinstance(value, Failed) else value


def _from_command_line(name: str, text: str, rules: Mapping[str, Json], sink: Sink) -> Node | None:
    """The text of `-p name=text`: as it is where text is wanted, else read like a spec's value.
    A list may be written `1,2` or `[1, 2]`."""
    written = f"{name}={text}"
    source = Source("-p", written)
    start = len(name) + 2
    span = Span(source, 1, start, 1, len(written) + 1)
    if rules.get("type") != "array":
        return Scalar(text, rules.get("type") == "string", span)
    if not text.startswith("["):
        parts = [part.strip() for part in text.split(",") if part.strip()]
        return Sequence(tuple(Scalar(part, False, span) for part in parts), span)
    trial = Sink()
    node = load_text(Source("-p", text), trial)
    if node is None:
        sink.error("AGC307", f"param `{name}` cannot be `{text}`", span, expected=describe(rules))
        return None
    value = as_json(node)
    items = value if isinstance(value, list) else [value]
    if not all(item is None or isinstance(item, (bool, int, float, str)) for item in items):
        sink.error("AGC307", f"param `{name}` cannot be `{text}`", span, expected=describe(rules))
        return None
    return node


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
        if _is_param(entry.key, spec, sink):
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


def _is_param(key: Scalar, spec: Spec, sink: Sink) -> bool:
    """Whether a key of the matrix is a param; what is neither that nor `exclude` is reported."""
    if key.text in spec.params:
        return True
    if key.text != EXCLUDE:
        names = [*spec.params, EXCLUDE]
        sink.error(
            "AGC433",
            f"`matrix` sweeps over `{key.text}`, which is no param",
            key.span,
            expected=f"one of {listed(names)}" if spec.params else None,
            fix=did_you_mean(key.text, names) or f"declare `{key.text}` under `params:`",
        )
    return False


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

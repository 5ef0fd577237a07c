"""Expressions: `{{ }}` inside scalars, evaluated one by one after parsing, so places survive.

Results are native: a scalar that is one expression keeps the type of its value; in any other
scalar the values are written into the text.
`expression_sandbox.py` runs them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from agentc.diagnostics.sink import Sink
from agentc.diagnostics.suggest import did_you_mean, listed
from agentc.front.expression_bounds import LARGEST_TEXT, ExpressionError
from agentc.front.expression_sandbox import Compiled, Sandbox, compile_text, run_all
from agentc.kinds.field import Json
from agentc.schema import language
from agentc.schema.coerce import Coercion, Failed
from agentc.source.scalars import is_expression, is_null
from agentc.source.tree import (
    Argument,
    Closure,
    Computed,
    Entry,
    Node,
    Scalar,
    Sequence,
    Unknown,
    described,
    written,
)
from agentc.source.tree import Mapping as MappingNode

__all__ = ["MISSING", "Evaluator", "RoundChoice"]

RoundChoice: TypeAlias = Callable[[Entry, str], Node | None]
"""What `per_round: [...]` at a path means in this round, computed; None when there is nothing
(reported)."""


class _Missing:
    """Stands in a scope for a param that has no value, which has been reported."""

    __slots__ = ()


MISSING = cast(Json, _Missing())


class _MissingValueError(Exception):
    pass


_Meaning: TypeAlias = tuple[Scalar, tuple[tuple[type, str | int | None], ...]]
"""A scalar and the values of the names in it: what it comes to follows from that."""


@dataclass(slots=True)
class Evaluator:
    """Replaces the expressions of a tree by their values.

    `used` collects the names that expressions mention. Compiled expressions are kept by text, since
    unrolled rounds evaluate the same ones again.
    """

    sink: Sink
    used: set[str] = field(default_factory=set)
    later: Callable[[str], str | None] | None = None
    """Why a name is not known yet where an expression stands; None for a name that is none."""
    lost: bool = False
    """Whether the spec's params could not be read (reported): an unknown name may be one."""
    empty: Callable[[], None] | None = None
    """Reports that `params:` is empty, where it is."""
    _compiled: dict[str, Compiled | ExpressionError] = field(default_factory=dict)
    _sandbox: Sandbox | None = None
    _literal: set[Node] = field(default_factory=set)
    _scope: Mapping[str, Json] | None = None
    _arguments: dict[Argument, Json] = field(default_factory=dict)
    """Those of templates, evaluated in `_scope`."""
    _computed: dict[_Meaning, tuple[Node, int]] = field(default_factory=dict)

    def evaluate(
        self,
        node: Node,
        scope: Mapping[str, Json],
        steps: tuple[str, ...] = (),
        choice: RoundChoice | None = None,
        path: str = "",
    ) -> Node:
        """The tree with every expression computed; the same object where there is none. What
        cannot be computed is reported and becomes Unknown. With `choice`, `{per_round: [...]}`
        anywhere in it becomes what that says; `path` is where the node stands."""
        if node in self._literal:
            return node
        match node:
            case Scalar() if is_expression(node.text):
                return self._scalar(node, scope, steps)
            case Sequence(items=items):
                new = tuple(self.evaluate(item, scope, steps, choice, path) for item in items)
                if any(a is not b for a, b in zip(new, items, strict=True)):
                    return Sequence(new, node.span)
            case MappingNode(entries=(entry,)) if choice and entry.key.text == language.PER_ROUND:
                return choice(entry, path) or Unknown(node.span)
            case MappingNode(entries=entries):
                values = tuple(
                    self.evaluate(e.value, scope, steps, choice, f"{path}.{e.key.text}")
                    for e in entries
                )
                if any(v is not e.value for v, e in zip(values, entries, strict=True)):
                    pairs = zip(entries, values, strict=True)
                    return MappingNode(tuple(Entry(e.key, v) for e, v in pairs), node.span)
            case Computed() | Unknown():
                return node
        self._literal.add(node)
        return node

    def _scalar(self, node: Scalar, scope: Mapping[str, Json], steps: tuple[str, ...]) -> Node:
        try:
            return self._value(node, scope, steps)
        except ExpressionError as error:
            self.sink.error(
                error.code,
                error.message,
                node.span,
                expected=error.expected,
                fix=error.fix,
                steps=steps,
            )
            return Unknown(node.span)
        except _MissingValueError:
            return Unknown(node.span)

    def _value(self, node: Scalar, scope: Mapping[str, Json], steps: tuple[str, ...]) -> Node:
        compiled = self._compile(node.text)
        if node.closure is not None:
            scope = self._inside(node.closure, compiled.names, scope, steps)
        else:
            self.used |= compiled.names
        for name in sorted(compiled.names):
            if name not in scope:
                if node.closure is None and name != "round" and (self.lost or self.empty):
                    if self.empty is not None:
                        self.empty()
                    raise _MissingValueError
                if self.later and node.closure is None and (why := self.later(name)):
                    raise ExpressionError("AGC301", why)
                raise _undefined(name, scope, node.closure)
            if scope[name] is MISSING:
                raise _MissingValueError
        assert self._sandbox is not None
        meaning = _meaning(node, compiled.names, scope)
        if meaning is not None and meaning in self._computed:
            # Most of what rounds repeat is the same in all of them. It counts as work each time.
            known, work = self._computed[meaning]
            self._sandbox.charge(work)
            return known
        left = self._sandbox.work
        found = self._written(node, compiled, run_all(compiled, scope, self._sandbox))
        if meaning is not None:
            self._computed[meaning] = (found, left - self._sandbox.work)
        return found

    def _written(self, node: Scalar, compiled: Compiled, values: list[Json]) -> Node:
        """The values of a scalar's parts as they stand in it."""
        if len(values) == 1 and not isinstance(compiled.parts[0], str):
            return Computed(values[0], node.span)
        text = "".join(value if isinstance(value, str) else written(value) for value in values)
        if len(text) > LARGEST_TEXT:
            raise ExpressionError("AGC304", "the text that this gives is too long")
        return Scalar(text, is_null(text), node.span)

    def _inside(
        self,
        closure: Closure,
        names: frozenset[str],
        scope: Mapping[str, Json],
        steps: tuple[str, ...],
    ) -> dict[str, Json]:
        """The names of a template's expression, with the values that the use of it gives them."""
        local: dict[str, Json] = {}
        for name in names:
            argument = closure.arguments.get(name)
            if argument is not None:
                local[name] = self._argument(argument, scope, steps)
            elif name == "round" and name in scope:
                local[name] = scope[name]
        return local

    def _argument(
        self, argument: Argument, scope: Mapping[str, Json], steps: tuple[str, ...]
    ) -> Json:
        if argument.node is None:
            return MISSING
        if scope is not self._scope:
            self._scope, self._arguments = scope, {}
        if argument not in self._arguments:
            node = self.evaluate(argument.node, scope, steps)
            self._arguments[argument] = self.coerce_argument(argument, node, steps)
        return self._arguments[argument]

    def coerce_argument(self, argument: Argument, node: Node, steps: tuple[str, ...] = ()) -> Json:
        """The value of a template's parameter, by its type; MISSING when it is wrong (reported)."""
        trial = Sink()
        value = Coercion(trial).value(node, argument.rules, argument.name)
        for wrong in trial.sorted():
            self.sink.error(
                "AGC424",
                f"parameter `{argument.name}` of the template cannot be {described(node)}",
                wrong.span,
                expected=wrong.expected,
                notes=wrong.notes,
                fix=wrong.fix,
                steps=steps,
            )
        return MISSING if isinstance(value, Failed) else value

    def _compile(self, text: str) -> Compiled:
        found = self._compiled.get(text)
        if found is None:
            try:
                if self._sandbox is None:
                    self._sandbox = Sandbox()
                found = compile_text(text, self._sandbox)
            except ExpressionError as error:
                found = error
            self._compiled[text] = found
        if isinstance(found, ExpressionError):
            raise found
        return found


def _meaning(node: Scalar, names: frozenset[str], scope: Mapping[str, Json]) -> _Meaning | None:
    """None where a value is no text or whole number, so that equal ones are hard to tell."""
    values = [scope[name] for name in sorted(names)]
    told: list[tuple[type, str | int | None]] = []
    for value in values:
        if isinstance(value, float):
            told.append((float, repr(value)))
        elif value is None or isinstance(value, (str, int)):
            told.append((type(value), value))
        else:
            return None
    return node, tuple(told)


def _undefined(name: str, scope: Mapping[str, Json], closure: Closure | None) -> ExpressionError:
    if name == "round":
        return ExpressionError("AGC301", "`round` exists only in the stages of a repeat")
    if closure is not None:
        own = sorted(closure.arguments)
        return ExpressionError(
            "AGC301",
            f"template `{closure.template}` has no parameter `{name}`",
            did_you_mean(name, own) or "declare it under the template's `params:`",
            f"one of {listed(own)}" if own else None,
        )
    known = sorted(scope)
    return ExpressionError(
        "AGC301",
        f"no param `{name}`",
        did_you_mean(name, known) or (None if known else "declare it under `params:`"),
        f"one of {listed(known)}" if known else None,
    )

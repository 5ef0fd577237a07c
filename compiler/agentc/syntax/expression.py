"""Expressions: `{{ }}` inside scalars, evaluated one by one after parsing, so places survive.

Results are native: a scalar that is one expression keeps the type of its value; in any other
scalar the values are written into the text. Neighbour: `sandbox.py`, where expressions run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from agentc.diagnostics.sink import Sink
from agentc.diagnostics.suggest import did_you_mean, listed
from agentc.kinds.field import Json
from agentc.source.scalars import is_null
from agentc.source.tree import Computed, Entry, Node, Scalar, Sequence, Unknown, written
from agentc.source.tree import Mapping as MappingNode
from agentc.syntax.sandbox import (
    LARGEST_TEXT,
    RESERVED_NAMES,
    Compiled,
    ExpressionError,
    Sandbox,
    compile_text,
    run_all,
)

__all__ = ["MISSING", "RESERVED_NAMES", "Evaluator"]


class _Missing:
    """Stands in a scope for a param that has no value, which has been reported."""

    __slots__ = ()


MISSING = cast(Json, _Missing())


class _MissingValueError(Exception):
    pass


@dataclass(slots=True)
class Evaluator:
    """Replaces the expressions of a tree by their values.

    `used` collects the names that expressions mention. Compiled expressions are kept by text, since
    unrolled rounds evaluate the same ones again.
    """

    sink: Sink
    used: set[str] = field(default_factory=set)
    _compiled: dict[str, Compiled | ExpressionError] = field(default_factory=dict)
    _sandbox: Sandbox | None = None
    _literal: dict[int, Node] = field(default_factory=dict)

    def evaluate(self, node: Node, scope: Mapping[str, Json], steps: tuple[str, ...] = ()) -> Node:
        """The tree with every expression computed; the same object where there is none. What
        cannot be computed is reported and becomes Unknown."""
        if id(node) in self._literal:
            return node
        match node:
            case Scalar() if node.is_expression:
                return self._scalar(node, scope, steps)
            case Sequence(items=items):
                new = tuple(self.evaluate(item, scope, steps) for item in items)
                if any(a is not b for a, b in zip(new, items, strict=True)):
                    return Sequence(new, node.span)
            case MappingNode(entries=entries):
                values = tuple(self.evaluate(entry.value, scope, steps) for entry in entries)
                if any(v is not e.value for v, e in zip(values, entries, strict=True)):
                    pairs = zip(entries, values, strict=True)
                    return MappingNode(tuple(Entry(e.key, v) for e, v in pairs), node.span)
            case Computed() | Unknown():
                return node
        self._literal[id(node)] = node  # keeps the node alive, so that its id stays its own
        return node

    def _scalar(self, node: Scalar, scope: Mapping[str, Json], steps: tuple[str, ...]) -> Node:
        try:
            return self._value(node, scope)
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

    def _value(self, node: Scalar, scope: Mapping[str, Json]) -> Node:
        compiled = self._compile(node.text)
        self.used |= compiled.names
        for name in sorted(compiled.names):
            if name not in scope:
                raise _undefined(name, scope)
            if scope[name] is MISSING:
                raise _MissingValueError
        assert self._sandbox is not None
        values = run_all(compiled, scope, self._sandbox)
        if len(values) == 1 and not isinstance(compiled.parts[0], str):
            return Computed(values[0], node.span)
        text = "".join(value if isinstance(value, str) else written(value) for value in values)
        if len(text) > LARGEST_TEXT:
            raise ExpressionError("AGC304", "the text that this gives is too long")
        return Scalar(text, is_null(text), node.span)

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


def _undefined(name: str, scope: Mapping[str, Json]) -> ExpressionError:
    if name == "round":
        return ExpressionError("AGC301", "`round` exists only in the stages of a repeat")
    known = sorted(scope)
    return ExpressionError(
        "AGC301",
        f"no param `{name}`",
        did_you_mean(name, known) or (None if known else "declare it under `params:`"),
        f"one of {listed(known)}" if known else None,
    )

"""The sandbox that expressions run in: Jinja2's immutable one, with less syntax and with bounds."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeAlias, cast

from jinja2 import StrictUndefined, TemplateError, TemplateSyntaxError, nodes
from jinja2.environment import TemplateExpression
from jinja2.sandbox import ImmutableSandboxedEnvironment

from agentc.diagnostics.suggest import did_you_mean, listed
from agentc.front.expression_bounds import (
    LARGEST_BITS,
    LARGEST_ITEMS,
    ExpressionError,
    as_bounded_json,
    bounded_join,
    bounded_replace,
    check_size,
    cost_of,
)
from agentc.kinds.field import SECRET, Json
from agentc.source.tree import shortened

_LONGEST = 2_000
_DEEPEST = 30
_MOST_NODES = 500
_WORK = 10_000_000
"""What all expressions of a spec may cost together, in items of lists handled; some seconds."""
_EVALUATION = 20
"""What evaluating an expression costs besides, in the same unit."""
_COMPILATION = 200
"""What compiling costs for each node of its syntax, and for twenty more."""
_FILTERS = (
    "abs", "first", "float", "int", "join", "last", "length", "list", "lower", "max", "min",
    "replace", "round", "sort", "string", "sum", "trim", "unique", "upper",
)  # fmt: skip
_TESTS = (
    "boolean", "divisibleby", "even", "false", "float", "in", "integer", "none", "number", "odd",
    "sequence", "string", "true",
)  # fmt: skip
_ALLOWED: tuple[type[nodes.Node], ...] = (
    nodes.Add, nodes.And, nodes.Call, nodes.Compare, nodes.Concat, nodes.CondExpr, nodes.Const,
    nodes.Div, nodes.Filter, nodes.FloorDiv, nodes.Getitem, nodes.Keyword, nodes.List, nodes.Mod,
    nodes.Mul, nodes.Name, nodes.Neg, nodes.Not, nodes.Operand, nodes.Or, nodes.Pos, nodes.Pow,
    nodes.Slice, nodes.Sub, nodes.Test, nodes.Tuple,
)  # fmt: skip
_FUNCTIONS: dict[str, Callable[..., object]] = {
    "abs": abs,
    "float": float,
    "int": int,
    "len": len,
    "max": max,
    "min": min,
    "range": range,
    "secret": lambda name: {SECRET: str(name)},
    "str": str,
}


_BARE_NAME = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_RESERVED = (
    "and", "else", "false", "if", "in", "is", "none", "not", "or", "true", "False", "None", "True",
)  # fmt: skip

Expression: TypeAlias = Callable[[Mapping[str, Json]], object]
"""Takes the values of names, and gives the expression's value."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """A scalar's parts, plain text and expressions in turn, and the names that they mention."""

    parts: tuple[str | Expression, ...]
    names: frozenset[str]
    nodes: int
    """How much syntax the expressions have, as a measure of what they cost."""


class Sandbox(ImmutableSandboxedEnvironment):
    """The sandbox with bounded operators and nothing but expressions.

    `work` counts down: however few expressions are written, rounds may repeat them.
    """

    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "%", "**"})

    def __init__(self) -> None:
        super().__init__(
            # Statements and comments cannot be written: a prompt may hold `{%` as text.
            block_start_string="\x01%",
            block_end_string="%\x01",
            comment_start_string="\x01#",
            comment_end_string="#\x01",
            undefined=StrictUndefined,
            optimized=False,
            autoescape=False,
            keep_trailing_newline=True,
        )
        self.work = _WORK
        own = {"replace": bounded_replace, "join": bounded_join}
        self.filters = {name: self._charged(own.get(name, self.filters[name])) for name in _FILTERS}
        self.tests = {name: self.tests[name] for name in self.tests if _allowed_test(name)}
        self.globals = {name: self._charged(function) for name, function in _FUNCTIONS.items()}
        self.globals["range"] = self._range

    def charge(self, work: int) -> None:
        """Count work done. Raises ExpressionError once it is too much."""
        self.work -= work
        if self.work < 0:
            raise ExpressionError(
                "AGC323",
                "the expressions of this spec take too much work",
                "use shorter lists, or fewer rounds",
            )

    def _charged(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function, assigned=())  # with the marks by which Jinja knows what to pass
        def charged(*values: Any, **named: Any) -> Any:
            self.charge(sum(map(cost_of, (*values, *named.values()))))
            return function(*values, **named)

        return charged

    def _range(self, *bounds: int) -> list[int]:
        numbers = range(*bounds)
        if len(numbers) > LARGEST_ITEMS:
            raise ExpressionError(
                "AGC304",
                f"`range` gives {len(numbers)} values here",
                expected=f"at most {LARGEST_ITEMS}",
            )
        self.charge(len(numbers))
        return list(numbers)

    def call_binop(self, context: Any, op: str, left: Any, right: Any) -> Any:
        self.charge(cost_of(left) + cost_of(right))
        check_size(op, left, right)
        return _OPERATORS[op](left, right)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        return False


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
}


def _allowed_test(name: str) -> bool:
    return name in _TESTS or not name[0].isalpha() or name in ("eq", "ne", "lt", "le", "gt", "ge")


def compile_text(text: str, environment: Sandbox) -> Compiled:
    """The parts of a text. Raises ExpressionError for what cannot be parsed or is refused."""
    bare = _BARE_NAME.fullmatch(text)
    if bare is not None and bare[1] not in _RESERVED:
        # Most expressions of templates are a name alone, and to compile one takes a millisecond.
        environment.charge(_COMPILATION * 21)
        return Compiled((operator.itemgetter(bare[1]),), frozenset([bare[1]]), 1)
    if text.count("{{") > 100:
        raise ExpressionError("AGC304", "more than 100 expressions in one value")
    try:
        template = environment.parse(text)
    except TemplateSyntaxError as error:
        raise ExpressionError("AGC302", syntax_message(error), syntax_fix(text)) from None
    except (RecursionError, MemoryError):
        raise ExpressionError("AGC304", "the expression is nested too deeply") from None
    parts: list[str | Expression] = []
    names: set[str] = set()
    size = 0
    for output in template.body:
        for node in cast(nodes.Output, output).nodes:
            if isinstance(node, nodes.TemplateData):
                parts.append(node.data)
                continue
            names |= _check(node)
            length = sum(1 for _ in _walk(node))
            environment.charge(_COMPILATION * (length + 20))
            size += length
            parts.append(_compiled(node, environment))
    if len(parts) > 1 and any(map(_calls_secret, _expressions(template))):
        raise _secret_inside()
    return Compiled(tuple(parts), frozenset(names), size)


def _expressions(template: nodes.Template) -> Iterator[nodes.Node]:
    for output in template.body:
        for node in cast(nodes.Output, output).nodes:
            if not isinstance(node, nodes.TemplateData):
                yield node


def _is_secret_call(node: nodes.Node) -> bool:
    return isinstance(node, nodes.Call) and (
        isinstance(node.node, nodes.Name) and node.node.name == SECRET
    )


def _calls_secret(root: nodes.Node) -> bool:
    return any(_is_secret_call(node) for node, _ in _walk(root))


def _whole_values(root: nodes.Node) -> Iterator[nodes.Node]:
    """The nodes whose value is the whole value of the expression."""
    if isinstance(root, nodes.CondExpr):
        yield from _whole_values(root.expr1)
        if root.expr2 is not None:
            yield from _whole_values(root.expr2)
    else:
        yield root


def _secret_inside() -> ExpressionError:
    return ExpressionError(
        "AGC320",
        "a secret can only be a whole value",
        "write the setting as `{secret: NAME}`, without anything around it",
    )


def _check(root: nodes.Node) -> set[str]:
    """Refuse syntax that is not allowed; the names that the expression mentions."""
    if _calls_secret(root):
        whole = set(_whole_values(root))
        if any(_is_secret_call(node) and node not in whole for node, _ in _walk(root)):
            raise _secret_inside()
    names: set[str] = set()
    called: set[nodes.Node] = set()
    for count, (node, depth) in enumerate(_walk(root)):
        if count > _MOST_NODES:
            raise ExpressionError("AGC304", "the expression is too long")
        if depth > _DEEPEST:
            raise ExpressionError("AGC304", "the expression is nested too deeply")
        match node:
            case nodes.Getattr(attr=attr):
                raise ExpressionError(
                    "AGC304",
                    f"expressions have no attributes, so `.{attr}` is refused",
                    f"filters that exist: {listed(_FILTERS, 30)}",
                )
            case nodes.Call(node=nodes.Name(name=name) as function) if name in _FUNCTIONS:
                called.add(function)
            case nodes.Call():
                raise ExpressionError("AGC304", *_uncallable(node))
            case nodes.Filter(name=name) if name not in _FILTERS:
                raise ExpressionError(
                    "AGC304",
                    f"no filter `{name}`",
                    did_you_mean(name, _FILTERS),
                    f"one of {listed(_FILTERS, 30)}",
                )
            case nodes.Test(name=name) if not _allowed_test(name):
                raise ExpressionError(
                    "AGC304",
                    f"no test `{name}`",
                    did_you_mean(name, _TESTS),
                    f"one of {listed(_TESTS, 30)}",
                )
            case nodes.Const(value=str(text)) if len(text) > _LONGEST:
                raise ExpressionError("AGC304", "a text in the expression is too long")
            case nodes.Const(value=int(value)) if value.bit_length() > LARGEST_BITS:
                raise ExpressionError("AGC304", "a number in the expression is too large")
            case nodes.Const(value=float(value)) if not math.isfinite(value):
                raise ExpressionError("AGC304", "a number in the expression is too large")
            case nodes.Name(name=name):
                if node not in called:
                    names.add(name)
            case _ if not isinstance(node, _ALLOWED):
                raise ExpressionError(
                    "AGC304", f"expressions have no {type(node).__name__.lower()}s"
                )
    return names


def _uncallable(call: nodes.Call) -> tuple[str, str | None, str]:
    known = f"one of {listed(sorted(_FUNCTIONS))}"
    if not isinstance(call.node, nodes.Name):
        return "only functions that are named can be called", None, known
    name = call.node.name
    return f"no function `{name}`", did_you_mean(name, _FUNCTIONS), known


def _walk(root: nodes.Node) -> Iterator[tuple[nodes.Node, int]]:
    pending = [(root, 0)]
    while pending:
        node, depth = pending.pop()
        yield node, depth
        pending += [(child, depth + 1) for child in node.iter_child_nodes()]


def _compiled(node: nodes.Expr, environment: Sandbox) -> TemplateExpression:
    # What Environment.compile_expression does, for an expression that is parsed already.
    body = nodes.Template([nodes.Assign(nodes.Name("result", "store"), node, lineno=1)], lineno=1)
    try:
        body.set_environment(environment)
        template = environment.from_string(body)
    except (TemplateError, SyntaxError, RecursionError, MemoryError):
        raise ExpressionError("AGC302", "this expression cannot be compiled") from None
    return TemplateExpression(template, undefined_to_none=False)


def run_all(compiled: Compiled, scope: Mapping[str, Json], sandbox: Sandbox) -> list[Json]:
    """The values of a text's parts; `scope` has every name. Raises ExpressionError."""
    # Only what is mentioned: to hand over thousands of params for each expression takes long.
    known = {name: scope[name] for name in compiled.names}
    largest = max(map(cost_of, known.values()), default=0)
    sandbox.charge(_EVALUATION + compiled.nodes * (1 + largest))
    return [part if isinstance(part, str) else _run(part, known) for part in compiled.parts]


def _run(expression: Expression, scope: Mapping[str, Json]) -> Json:
    try:
        value = expression(scope)
    except ExpressionError:
        raise
    except ZeroDivisionError:
        raise ExpressionError("AGC303", "the expression divides by zero") from None
    except (OverflowError, MemoryError, RecursionError):
        raise ExpressionError("AGC304", "the expression's value is too large") from None
    except (TemplateError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        reason = shortened(str(error), 120)
        raise ExpressionError("AGC303", f"the expression fails: {reason}") from None
    return as_bounded_json(value)


_FOREIGN = {
    "^": "a power is written with `**`",
    "&&": "write `and`",
    "||": "write `or`",
    "?": "write `A if CONDITION else B`",
    "\N{MULTIPLICATION SIGN}": "write `*`",
    "\N{DIVISION SIGN}": "write `/`",
    "\N{GREATER-THAN OR EQUAL TO}": "write `>=`",
    "\N{LESS-THAN OR EQUAL TO}": "write `<=`",
    "\N{NOT EQUAL TO}": "write `!=`",
    "{%": "statements are not part of the language; write `A if CONDITION else B`",
}
"""Signs of other languages, and what is written here."""


def syntax_message(error: TemplateSyntaxError) -> str:
    """The message without the words of the engine."""
    text = error.message or "unknown trouble"
    if "Expected an expression, got 'end of print statement'" in text:
        return "the expression is empty, or ends too early"
    for jargon, plain in (
        ("'end of print statement'", "`}}`"),
        ("end of print statement", "`}}`"),
        ("end of template", "end of the text"),
        ("template", "expression"),
    ):
        text = text.replace(jargon, plain)
    return f"the expression cannot be parsed: {shortened(text.rstrip('.'), 120)}"


def syntax_fix(text: str) -> str | None:
    """What is written here for what was written there."""
    if text.count("{{") != text.count("}}"):
        return "close the expression with `}}`"
    inside = " ".join(re.findall(r"\{\{(.*?)\}\}", text, re.DOTALL))
    bare = re.sub(r"'[^']*'|\"[^\"]*\"", "", inside)
    for sign, remedy in _FOREIGN.items():
        if sign in bare:
            return remedy
    if re.search(r"(?<![=!<>])=(?!=)", bare):
        return "a comparison is written with `==`"
    if not inside.strip():
        return "write the name of a param, or leave the braces out"
    return None

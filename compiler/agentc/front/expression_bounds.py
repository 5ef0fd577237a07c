"""How large what an expression makes may be, and the error that says so."""

from __future__ import annotations

import math
from typing import Any, cast

from jinja2 import StrictUndefined

from agentc.kinds.field import SECRET, Json
from agentc.source.text_checks import forbidden_in_values
from agentc.source.tree import written

LARGEST_ITEMS = 10_000
LARGEST_TEXT = 100_000
LARGEST_BITS = 256


class ExpressionError(Exception):
    """An expression that is refused or fails; carries the diagnostic's parts."""

    def __init__(
        self, code: str, message: str, fix: str | None = None, expected: str | None = None
    ):
        super().__init__(message)
        self.code, self.message, self.fix, self.expected = code, message, fix, expected


def as_bounded_json(value: object) -> Json:
    """What an expression gave, as JSON. Raises ExpressionError for what is none, or too large."""
    match value:
        case None | bool():
            return value
        case str():
            _check_count(len(value) // 10)
            _check_characters(value)
            return value
        case int():
            if value.bit_length() > LARGEST_BITS:
                raise ExpressionError("AGC304", "the expression's value is too large")
            return value
        case float():
            if not math.isfinite(value):
                raise ExpressionError("AGC303", "the expression's value is not a finite number")
            return value
        case list() | tuple() | range():
            _check_count(_deep_size(value))
            return [as_bounded_json(item) for item in value]
        case dict() if set(value) == {SECRET}:
            return cast(Json, value)
    if isinstance(value, StrictUndefined):
        raise ExpressionError("AGC303", "the expression requests an item that does not exist")
    raise ExpressionError("AGC303", "the expression's value is neither number, text nor list")


def _check_characters(text: str) -> None:
    forbidden = forbidden_in_values(text)
    if forbidden is not None:
        code, character = forbidden
        raise ExpressionError(
            code, f"a value may not hold the {character}", "remove the escape that gives it"
        )


def check_size(op: str, left: object, right: object) -> None:
    """Refuse an operation before it makes something too large. Raises ExpressionError."""
    match op, left, right:
        case "%", str(), _:
            raise ExpressionError("AGC304", "texts cannot be formatted by `%`", "use `~` to join")
        case "*", (str() | list() | tuple()) as many, int(times):
            _check_count(_deep_size(many) * max(times, 0))
        case "*", int(times), (str() | list() | tuple()) as many:
            _check_count(_deep_size(many) * max(times, 0))
        case "+", (str() | list() | tuple()) as first, (str() | list() | tuple()) as second:
            _check_count(_deep_size(first) + _deep_size(second))
        case "**", int() | float(), int() | float():
            bits = max(left.bit_length(), 1) if isinstance(left, int) else 1
            if abs(right) * bits > LARGEST_BITS:
                raise ExpressionError("AGC304", "the expression's value is too large")
        case "*", int(), int():
            if left.bit_length() + right.bit_length() > 2 * LARGEST_BITS:
                raise ExpressionError("AGC304", "the expression's value is too large")


def _deep_size(value: object) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, (list, tuple)):
        return 1 + sum(_deep_size(item) for item in value)
    return 1


def _check_count(count: int) -> None:
    """Raises ExpressionError for more items or characters than a value may have."""
    if count > LARGEST_ITEMS:
        raise ExpressionError(
            "AGC304",
            "the expression's value is too long",
            expected=f"at most {LARGEST_ITEMS} items or characters",
        )


def cost_of(value: object) -> int:
    """The work that handling a value means, in items of lists."""
    if isinstance(value, str):
        return len(value) // 100
    return len(value) if isinstance(value, (list, tuple)) else 0


def bounded_replace(text: object, old: object, new: object) -> str:
    """Jinja's filter, which looks at the length first."""
    whole, part, other = str(text), str(old), str(new)
    _check_count(len(whole) + whole.count(part) * len(other))
    return whole.replace(part, other)


def bounded_join(items: Any, separator: object = "") -> str:
    """Jinja's filter, which looks at the length first; items are as a spec would have them."""
    texts = [item if isinstance(item, str) else written(item) for item in items]
    _check_count(sum(len(text) for text in texts) + len(texts) * len(str(separator)))
    return str(separator).join(texts)

"""Values out of the JSON of a request, and how one is refused by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_MAY_BE_LONE = (b"\\u", b"\xed", b"\0")
"""In bytes of JSON that hold a lone surrogate: an escape, one that was encoded all the same, or
another encoding than UTF-8."""


class ApiError(Exception):
    """A reply other than 200; `code` is OpenAI's machine-readable word for it."""

    def __init__(self, status: int, message: str, code: str, param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.param = param


def parse_body(data: bytes | bytearray) -> Any:
    """The JSON of a body. Raises ApiError (400), also for a lone surrogate anywhere in it: half of
    a character, as a text has that was cut within an emoji, which no tokenizer or file can hold."""
    try:
        body = json.loads(data)
        if any(mark in data for mark in _MAY_BE_LONE):
            json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = ascii(error.object[error.start : error.start + 1])
        raise ApiError(
            400, f"a text of the body holds half of a character ({half})", "invalid_text"
        ) from error
    except (ValueError, RecursionError) as error:
        raise ApiError(400, f"the body is not JSON: {error}", "invalid_json") from error
    return body


def refuse_unknown(body: Mapping[str, Any], known: frozenset[str]) -> None:
    """Raise when the body has fields that this server would ignore."""
    unknown = sorted(set(body) - known)
    if unknown:
        raise ApiError(
            400,
            f"unsupported fields: {', '.join(unknown)}; this server honours "
            f"{', '.join(sorted(known))}",
            "unsupported_field",
            unknown[0],
        )


def require_model(body: Mapping[str, Any], served: str) -> None:
    """Raise 404 unless the body names the served model."""
    name = text(body, "model")
    if name != served:
        raise ApiError(
            404,
            f"the model {name!r} does not exist; this server has {served!r}",
            "model_not_found",
            "model",
        )


def integer(
    body: Mapping[str, Any],
    name: str,
    default: int,
    low: int | None = None,
    high: int | None = None,
) -> int:
    value = body.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int):
        raise invalid_value(name, "must be an integer")
    return int(_within(name, value, low, high))


def number(body: Mapping[str, Any], name: str, default: float, low: float, high: float) -> float:
    value = body.get(name, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise invalid_value(name, "must be a number")
    return float(_within(name, value, low, high))


def flag(body: Mapping[str, Any], name: str, default: bool) -> bool:
    value = body.get(name, default)
    if not isinstance(value, bool):
        raise invalid_value(name, "must be true or false")
    return value


def text(body: Mapping[str, Any], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str):
        raise invalid_value(name, "must be given, as text")
    return value


def _within(name: str, value: float, low: float | None, high: float | None) -> float:
    # NaN fails both comparisons the right way round only when they are written like this.
    if (low is not None and not value >= low) or (high is not None and not value <= high):
        raise invalid_value(
            name, f"must lie in [{low}, {'any' if high is None else high}], is {value}"
        )
    return value


def invalid_value(name: str, problem: str) -> ApiError:
    """The refusal of a field's value."""
    return ApiError(400, f"{name}: {problem}", "invalid_value", name)

"""What to write instead of a value that is refused, or of text that is nearly a number, a truth
value or null.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from collections.abc import Mapping as Table
from typing import Literal, TypeAlias

from agentc.diagnostics.odd_characters import without_accents
from agentc.diagnostics.suggest import did_you_mean
from agentc.kinds.field import Json
from agentc.kinds.metric_names import METRIC_NAMES, METRIC_PATTERN
from agentc.schema.describe import ADDRESS, describe
from agentc.schema.language import PER_ROUND
from agentc.source.scalars import (
    LARGEST_INTEGER,
    Failed,
    is_null,
    read_integer,
    read_number,
    read_scalar,
)
from agentc.source.tree import Computed, Mapping, Node, Scalar, Sequence

Wanted: TypeAlias = Literal["integer", "number", "boolean", "null"]

_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_FACTORS = {"k": 1_000, "m": 1_000_000, "b": 1_000_000_000}
_UNITS = {"kb": 1 / 1024, "mb": 1, "mib": 1, "gb": 1024, "gib": 1024, "tb": 1024**2}
_SECONDS = {"s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600}
_SECONDS_OF = {"_s": 1, "seconds": 1, "minutes": 60, "hours": 3600}
"""Ends of the names of settings, and the seconds of their unit."""
_EXPRESSION = re.compile(r"\$?\{\{?\s*([a-z_][a-z0-9_]*)\s*\}\}?|\$([a-z_][a-z0-9_]*)")


def advise(text: str, wanted: Wanted, path: str = "") -> str | None:
    """A help line for text that is nearly of the wanted type, or None. `path` is the setting."""
    if (variable := _EXPRESSION.fullmatch(text)) is not None:
        return f'write "{{{{ {variable[1] or variable[2]} }}}}", with the quotes'
    if wanted == "boolean":
        word = text.lower()
        if word in ("yes", "on", "y", "1"):
            return "write `true`"
        if word in ("no", "off", "n", "0"):
            return "write `false`"
        return None
    if wanted == "null":
        return "write `null`" if text in ("None", "none", "nil", "NULL", "-") else None
    if re.fullmatch(r"[-+]?\.?(inf|nan)", text.lower()):
        return "a number has to be finite"
    for reading in _READINGS:
        advised = reading(text, wanted, path)
        if advised is not None:
            return advised
    return None


def out_of_range(text: str, wanted: Wanted = "number") -> str | None:
    """What is wrong with text that is a number but none that a computer holds."""
    if re.fullmatch(r"[-+]?[0-9][0-9_]*", text):
        value = read_integer(text)
        if value is None or (wanted == "integer" and abs(value) > LARGEST_INTEGER):
            return f"the number is too large: whole numbers go up to {LARGEST_INTEGER}"
        return None
    match = re.fullmatch(r"[-+]?([0-9_]*\.?[0-9_]*)[eE]([-+]?)[0-9]+", text)
    if match is None or read_number(text) is not None or not match[1].strip("._"):
        return None
    if match[2] == "-":
        return "the number is too small: the smallest above 0 is about 1e-308"
    return "the number is too large: the largest is about 1.8e308"


def _minus(text: str, wanted: Wanted, path: str) -> str | None:
    tidy = re.sub("[\N{MINUS SIGN}\N{EN DASH}\N{NON-BREAKING HYPHEN}]", "-", text)
    if tidy != text and read_number(tidy) is not None:
        return f"write `{tidy}`, with an ordinary minus sign"
    return None


def _comma(text: str, wanted: Wanted, path: str) -> str | None:
    thousands = re.fullmatch(r"-?[1-9]\d{0,2}(,\d{3})+", text)
    decimal = re.fullmatch(r"-?\d*,\d+([eE][-+]?\d+)?", text)
    whole, point = text.replace(",", "_"), text.replace(",", ".")
    if thousands and wanted == "number" and decimal and not text.endswith("0"):
        return f"write `{point}` for a decimal point, or `{whole}` for thousands"
    if thousands:
        return f"write `{whole}`"
    if decimal:
        return f"write `{point}`, with a decimal point"
    return None


def _grouped(text: str, wanted: Wanted, path: str) -> str | None:
    """1 024, 1'024, 1 e-6."""
    joined = re.sub(r"[\s'’]", "", text)
    if joined != text and read_number(joined) is not None:
        grouped = re.fullmatch(r"-?\d{1,3}([\s'’]\d{3})+", text)
        if grouped or re.search(r"[eE]", joined):
            return f"write `{joined}`"
    return None


def _percent(text: str, wanted: Wanted, path: str) -> str | None:
    if text.endswith("%") and (share := read_number(text[:-1].strip())) is not None:
        return f"write `{share / 100:g}`"
    return None


def _scaled(text: str, wanted: Wanted, path: str) -> str | None:
    """4k, 4k tokens, 16GB."""
    match = re.fullmatch(r"(-?\d+(?:\.\d+)?)\s*([kKmMbB])(?:\s+[A-Za-z]+)?", text.replace("_", ""))
    if match:
        return f"write `{float(match[1]) * _FACTORS[match[2].lower()]:.0f}`"
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kKmMgGtT]i?[bB])", text)
    if match and path.endswith("_mb"):
        return f"write `{float(match[1]) * _UNITS[match[2].lower()]:.0f}`"
    return None


def _power(text: str, wanted: Wanted, path: str) -> str | None:
    """2*10^-5, 2×10⁻⁵, 10^-5."""
    flat = re.sub("([⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺]+)", r"^\1", text).translate(_SUPERSCRIPTS)
    flat = re.sub("[×·⋅]", "*", flat.replace("\N{MINUS SIGN}", "-"))
    match = re.fullmatch(
        r"(?:(-?\d+(?:\.\d+)?)\s*[*x]\s*)?10\s*(?:\^|\*\*)\s*\(?([-+]?\d+)\)?", flat
    )
    return f"write `{match[1] or 1}e{match[2]}`" if match else None


def _fraction(text: str, wanted: Wanted, path: str) -> str | None:
    import unicodedata

    if len(text) == 1 and not text.isascii() and unicodedata.decomposition(text)[:5] == "<frac":
        return f"write `{unicodedata.numeric(text):g}`"
    match = re.fullmatch(r"(-?\d{1,15}(?:\.\d+)?)\s*/\s*(\d{1,15}(?:\.\d+)?)", text)
    if match and float(match[2]):
        return f"write `{float(match[1]) / float(match[2]):g}`"
    return None


def _clock(text: str, wanted: Wanted, path: str) -> str | None:
    match = re.fullmatch(r"(\d{1,4}):([0-5]\d)(?::([0-5]\d))?", text)
    if match is None or not path.endswith(("hours", "minutes")):
        return None
    hours = int(match[1]) + int(match[2]) / 60 + int(match[3] or 0) / 3600
    return f"write `{hours if path.endswith('hours') else hours * 60:g}`"


def _duration(text: str, wanted: Wanted, path: str) -> str | None:
    """10 min where seconds are wanted, 2h where minutes are."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|sec|m|min|h)(?:onds?|utes?|ours?|s)?", text)
    ours = next((seconds for end, seconds in _SECONDS_OF.items() if path.endswith(end)), None)
    if match is None or ours is None:
        return None
    value = float(match[1]) * _SECONDS[match[2]] / ours
    return f"write `{value:g}`" if wanted == "number" or value.is_integer() else None


def _comment(text: str, wanted: Wanted, path: str) -> str | None:
    match = re.fullmatch(r"(\S+?)\s*(?:#|//|--|;|＃)\s*(\S.*)", text)
    if match and read_number(match[1]) is not None:
        return f"write `{match[1]}  # {match[2]}`: comments start with `#` behind a space"
    return None


def _trimmed(text: str, wanted: Wanted, path: str) -> str | None:
    """3, and 3; and 1e-6f and ~3 and 3 epochs."""
    bare = re.sub(r"^[~≈=<>]+\s*|[,;fF]+$|\s+[A-Za-z]+$", "", text)
    return f"write `{bare}`" if bare != text and read_number(bare) is not None else None


def _arithmetic(text: str, wanted: Wanted, path: str) -> str | None:
    if re.fullmatch(r"-?[\d.]+\s*[-+*]\s*-?[\d.]+", text) and re.search(r"\s", text):
        return f'arithmetic is inside of the braces: "{{{{ {text} }}}}"'
    return None


_READINGS: tuple[Callable[[str, Wanted, str], str | None], ...] = (
    *(_minus, _comma, _grouped, _percent, _duration, _scaled, _power, _fraction, _clock),
    *(_comment, _trimmed, _arithmetic),
)


def _of_several(node: Sequence, path: str, several: Several | None) -> str | None:
    """Help for a list where one value fits."""
    texts = [item.text for item in node.items if isinstance(item, Scalar)]
    if not texts or len(texts) != len(node.items):
        return None
    if len(texts) == 1:
        return f"write `{texts[0]}`"
    written = f"[{', '.join(texts)}]"
    if len(written) > 60:
        written = "[...]"
    if several == "rounds":
        return f"for one value a round write `{{{PER_ROUND}: {written}}}`"
    name = path.rsplit(".", 1)[-1]
    if several == "sweep":
        return (
            f"for a run with each, declare a param `{name}`, write `matrix: {{{name}: {written}}}` "
            f'at the top level, and `{name}: "{{{{ {name} }}}}"` here'
        )
    return None


def _as_mapping(node: Sequence) -> str:
    """Help for a list where a mapping fits."""
    texts = [item.text for item in node.items if isinstance(item, Scalar)]
    key, _, value = texts[0].partition("=") if texts else ("", "", "")
    if value:
        return f"write `{{{key.strip()}: {value.strip()}}}`"
    return f"write a mapping, such as `{{NAME: {texts[0] if texts else 'VALUE'}}}`"


_PLAIN_WORD = re.compile(r"[A-Za-z0-9_./@%+=~-]+")
"""Words that need no quotes within `[...]`."""


def _as_list(text: str, path: str) -> str:
    """Help for a text where a list of texts fits: a command is split as a shell splits it, another
    text at commas."""
    words = [text]
    if _is_command(path):
        try:
            words = shlex.split(text)
        except ValueError:  # a quote without its end
            words = text.split()
    elif "," in text:
        words = [word for part in text.split(",") if (word := part.strip())]
    elif _PLAIN_WORD.fullmatch(text) is None:
        return f"write `[{text}]`"
    shown = (word if _PLAIN_WORD.fullmatch(word) else json.dumps(word) for word in words)
    return f"write `[{', '.join(shown)}]`"


def _is_command(path: str) -> bool:
    return path.rsplit(".", 1)[-1] == "command"


def bounds_in_words(value: Json, schema: Table[str, Json]) -> str:
    """What a value has to be within."""
    if isinstance(value, (int, float)):
        return describe(schema)
    unit, prefix = ("item", "Items")
    if isinstance(value, str):
        unit, prefix = ("character", "Length")
    elif isinstance(value, dict):
        unit, prefix = ("key", "Properties")
    least, most = schema.get(f"min{prefix}"), schema.get(f"max{prefix}")
    limits = [f"at least {least}" if least is not None else "", f"at most {most}" if most else ""]
    several = "" if (most or least) == 1 else "s"
    return f"{' and '.join(limit for limit in limits if limit)} {unit}{several}"


def fits(pattern: str, value: str) -> bool:
    """Whether a text fits a schema's pattern. JSON Schema's `$` is the very end; Python's also
    stands before a last line break."""
    if pattern.endswith("$") and not pattern.endswith("\\$"):
        pattern = pattern[:-1] + r"\Z"
    return re.search(pattern, value) is not None


def fitting_text(pattern: str, value: str) -> str | None:
    """Help where small letters, or `_` for what cannot stand there, make a text fit."""
    small = without_accents(value).lower()
    address = re.match(r"https?://[^/]+/((?:datasets/)?[^?#]+)", value)
    below = address[1].removeprefix("datasets/").rstrip("/") if address else ""
    for text in (below, small, re.sub(r"[^a-z0-9_-]+", "_", small).strip("_")):
        if text and text != value and fits(pattern, text):
            return f"write `{text}`"
    if pattern.startswith(ADDRESS) and "://" not in value and fits(pattern, f"https://{value}"):
        local = re.match(r"(localhost|127\.|0\.0\.0\.0|\[::1\])", value) is not None
        return f"write `{'http' if local else 'https'}://{value}`"
    if pattern == METRIC_PATTERN:
        return did_you_mean(value, METRIC_NAMES)
    return None


def range_note(node: Node, types: tuple[str, ...]) -> tuple[str, ...]:
    """A note for a number that is too large or too small to be one."""
    text = ""
    if isinstance(node, Scalar) and not node.quoted:
        text = node.text
    elif isinstance(node, Computed) and isinstance(node.json, int):
        text = str(node.json)
    whole = "integer" in types and "number" not in types
    note = None
    if whole or "number" in types:
        note = out_of_range(text, "integer" if whole else "number")
    return () if note is None else (note,)


Several: TypeAlias = Literal["rounds", "sweep"]
"""How a stage may get several values of a setting of one value."""


def advice(
    node: Node, types: tuple[str, ...], path: str, several: Several | None = None
) -> str | None:
    """Help for a value of the wrong type."""
    wanted = [name for name in types if name != "null"]
    if isinstance(node, Sequence):
        return _as_mapping(node) if wanted == ["object"] else _of_several(node, path, several)
    if isinstance(node, Mapping) and wanted == ["array"]:
        return "write `- ` before each item, for a list"
    if not isinstance(node, Scalar):
        return None
    null = not node.quoted and is_null(node.text)
    is_list = wanted == ["array"] and bool(node.text.strip()) and not null
    if is_list and (not node.quoted or _is_command(path)):
        return _as_list(node.text, path)
    if node.quoted:
        return _advice_for_quoted(node, types, path)
    if null:
        if node.text and "string" in types:
            return f'write "{node.text}" in quotes if the text is meant'
        return "give a value, or leave the key out"
    return _advice_for_plain(node, types, path)


def _advice_for_quoted(node: Scalar, types: tuple[str, ...], path: str) -> str | None:
    """A text, where its value is meant or an expression."""
    if "{" in node.text and ("integer" in types or "number" in types):
        return advise(node.text, "number", path)
    plain = Scalar(node.text, False, node.span)
    if not isinstance(read_scalar(plain, types), Failed) and any(name != "null" for name in types):
        return f"remove the quotes: `{node.text}`"
    return None


def _advice_for_plain(node: Scalar, types: tuple[str, ...], path: str) -> str | None:
    """Text that is nearly a truth value, null or a number."""
    if "boolean" in types:
        return advise(node.text, "boolean")
    if "null" in types and node.text.lower() in ("all", "unlimited", "infinite", "any", "no"):
        return f"write `null` for `{node.text}`"
    if "integer" in types or "number" in types:
        kind: Literal["integer", "number"] = "number" if "number" in types else "integer"
        return advise(node.text, kind, path) or (
            advise(node.text, "null") if "null" in types else None
        )
    return None

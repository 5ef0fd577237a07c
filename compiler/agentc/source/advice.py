"""Help for text that is nearly a number, a truth value or null: what to write instead.

Only what has one reading is offered as the text to write; where a comma may be either kind, both
readings are named. Neighbour: `scalars.py`, which reads what is right.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, TypeAlias

from agentc.source.scalars import LARGEST_INTEGER, read_integer, read_number

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
        found = reading(text, wanted, path)
        if found is not None:
            return found
    return None


def out_of_range(text: str, wanted: Wanted = "number") -> str | None:
    """What is wrong with text that is a number but none that a computer holds."""
    if re.fullmatch(r"[-+]?[0-9][0-9_]*", text):
        value = read_integer(text)
        if value is None or (wanted == "integer" and abs(value) > LARGEST_INTEGER):
            return f"the number is too large: whole numbers go up to {LARGEST_INTEGER}"
        return None
    found = re.fullmatch(r"[-+]?([0-9_]*\.?[0-9_]*)[eE]([-+]?)[0-9]+", text)
    if found is None or read_number(text) is not None or not found[1].strip("._"):
        return None
    if found[2] == "-":
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
    found = re.fullmatch(r"(-?\d+(?:\.\d+)?)\s*([kKmMbB])(?:\s+[A-Za-z]+)?", text.replace("_", ""))
    if found:
        return f"write `{float(found[1]) * _FACTORS[found[2].lower()]:.0f}`"
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kKmMgGtT]i?[bB])", text)
    if found and path.endswith("_mb"):
        return f"write `{float(found[1]) * _UNITS[found[2].lower()]:.0f}`"
    return None


def _power(text: str, wanted: Wanted, path: str) -> str | None:
    """2*10^-5, 2×10⁻⁵, 10^-5."""
    flat = re.sub("([⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺]+)", r"^\1", text).translate(_SUPERSCRIPTS)
    flat = re.sub("[×·⋅]", "*", flat.replace("\N{MINUS SIGN}", "-"))
    found = re.fullmatch(
        r"(?:(-?\d+(?:\.\d+)?)\s*[*x]\s*)?10\s*(?:\^|\*\*)\s*\(?([-+]?\d+)\)?", flat
    )
    return f"write `{found[1] or 1}e{found[2]}`" if found else None


def _fraction(text: str, wanted: Wanted, path: str) -> str | None:
    import unicodedata

    if len(text) == 1 and not text.isascii() and unicodedata.decomposition(text)[:5] == "<frac":
        return f"write `{unicodedata.numeric(text):g}`"
    found = re.fullmatch(r"(-?\d{1,15}(?:\.\d+)?)\s*/\s*(\d{1,15}(?:\.\d+)?)", text)
    if found and float(found[2]):
        return f"write `{float(found[1]) / float(found[2]):g}`"
    return None


def _clock(text: str, wanted: Wanted, path: str) -> str | None:
    found = re.fullmatch(r"(\d{1,4}):([0-5]\d)(?::([0-5]\d))?", text)
    if found is None or not path.endswith(("hours", "minutes")):
        return None
    hours = int(found[1]) + int(found[2]) / 60 + int(found[3] or 0) / 3600
    return f"write `{hours if path.endswith('hours') else hours * 60:g}`"


def _duration(text: str, wanted: Wanted, path: str) -> str | None:
    """10 min where seconds are wanted, 2h where minutes are."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|sec|m|min|h)(?:onds?|utes?|ours?|s)?", text)
    ours = next((each for end, each in _SECONDS_OF.items() if path.endswith(end)), None)
    if found is None or ours is None:
        return None
    value = float(found[1]) * _SECONDS[found[2]] / ours
    return f"write `{value:g}`" if wanted == "number" or value.is_integer() else None


def _comment(text: str, wanted: Wanted, path: str) -> str | None:
    found = re.fullmatch(r"(\S+?)\s*(?:#|//|--|;|＃)\s*(\S.*)", text)
    if found and read_number(found[1]) is not None:
        return f"write `{found[1]}  # {found[2]}`: comments start with `#` behind a space"
    return None


def _trimmed(text: str, wanted: Wanted, path: str) -> str | None:
    """3, and 3; and 1e-6f and ~3 and 3 epochs."""
    bare = re.sub(r"^[~≈=<>]+\s*|[,;fF]+$|\s+[A-Za-z]+$", "", text)
    return f"write `{bare}`" if bare != text and read_number(bare) is not None else None


def _arithmetic(text: str, wanted: Wanted, path: str) -> str | None:
    if re.fullmatch(r"-?[\d.]+\s*[-+*]\s*-?[\d.]+", text) and re.search(r"\s", text):
        return f'arithmetic stands inside of the braces: "{{{{ {text} }}}}"'
    return None


_READINGS: tuple[Callable[[str, Wanted, str], str | None], ...] = (
    *(_minus, _comma, _grouped, _percent, _duration, _scaled, _power, _fraction, _clock),
    *(_comment, _trimmed, _arithmetic),
)

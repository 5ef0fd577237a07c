"""What to write instead of a value that is refused. Part of `coerce.py`."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping as Table
from typing import Literal, TypeAlias

from agentc.diagnostics.odd_characters import without_accents
from agentc.diagnostics.suggest import did_you_mean
from agentc.kinds.field import Json
from agentc.kinds.metric_names import METRIC_NAMES, METRIC_PATTERN
from agentc.schema.describe import ADDRESS, describe
from agentc.schema.language import PER_ROUND
from agentc.source.advice import advise, out_of_range
from agentc.source.scalars import Failed, is_null, read_scalar
from agentc.source.tree import Computed, Mapping, Node, Scalar, Sequence


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
        words = [word for each in text.split(",") if (word := each.strip())]
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
    if isinstance(node, Sequence):
        if [name for name in types if name != "null"] == ["object"]:
            return _as_mapping(node)
        return _of_several(node, path, several)
    if isinstance(node, Mapping) and [name for name in types if name != "null"] == ["array"]:
        return "write `- ` before each item, for a list"
    if not isinstance(node, Scalar):
        return None
    wanted = [name for name in types if name != "null"]
    null = not node.quoted and is_null(node.text)
    is_list = wanted == ["array"] and bool(node.text.strip()) and not null
    if is_list and (not node.quoted or _is_command(path)):
        return _as_list(node.text, path)
    if node.quoted:
        if "{" in node.text and ("integer" in wanted or "number" in wanted):
            return advise(node.text, "number", path)
        plain = Scalar(node.text, False, node.span)
        if not isinstance(read_scalar(plain, types), Failed) and wanted:
            return f"remove the quotes: `{node.text}`"
        return None
    if null:
        if node.text and "string" in types:
            return f'write "{node.text}" in quotes if the text is meant'
        return "give a value, or leave the key out"
    if "boolean" in wanted:
        return advise(node.text, "boolean")
    if "null" in types and node.text.lower() in ("all", "unlimited", "infinite", "any", "no"):
        return f"write `null` for `{node.text}`"
    if "integer" in wanted or "number" in wanted:
        kind: Literal["integer", "number"] = "number" if "number" in wanted else "integer"
        return advise(node.text, kind, path) or (
            advise(node.text, "null") if "null" in types else None
        )
    return None

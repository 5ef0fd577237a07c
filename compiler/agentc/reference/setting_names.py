"""Settings, inputs and backends by the names that people look up: what `agentc explain` says of a
word that is no kind, no term and no metric.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentc.backend_api import BackendTable, StageBackend, entry_fields
from agentc.kinds import KINDS
from agentc.kinds.field import Field
from agentc.reference.examples import short_name
from agentc.reference.pages import type_text
from agentc.schema import language
from agentc.schema.standard_names import standard_names
from agentc.text import aligned

FAMILIES = ("env", "serve")
SECTION_FIELDS: dict[str, Sequence[Field]] = {
    "params": language.PARAM_FIELDS,
    "prompts": language.PROMPT_FIELDS,
    "claims": language.CLAIM_FIELDS,
    "budget": language.BUDGET_FIELDS,
    "search": language.SEARCH_FIELDS,
    "search.over": language.SEARCH_RANGE_FIELDS,
    "paper": language.PAPER_FIELDS,
    "discrepancies": language.DISCREPANCY_FIELDS,
    "placement": language.PLACEMENT_FIELDS,
    "repeat": (language.ROUNDS, language.UNTIL),
    "servers": language.SHARING_FIELDS,
    "environments": language.SHARING_FIELDS,
}
"""Settings of the language that are no kind's and no backend's."""
SINGLE_SECTIONS = ("budget", "search", "paper")
"""Sections that are one mapping of settings, not one for each name."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A name and the lines about it."""

    name: str
    lines: tuple[str, ...]


def setting_tables(table: BackendTable) -> list[tuple[str, Sequence[Field]]]:
    """The settings of each kind, each backend and each section, with its name."""
    own = [
        (each.id, each.options if isinstance(each, StageBackend) else entry_fields(each))
        for each in table
    ]
    return [*((kind.name, table.fields_of(kind)) for kind in KINDS), *own, *SECTION_FIELDS.items()]


def backends_called(name: str, table: BackendTable) -> Iterator[Topic]:
    """The backends of stages that a spec may call so, such as `trl`."""
    short = [each for each in table if isinstance(each, StageBackend) and short_name(each) == name]
    if short:
        rows = [(each.id, each.doc) for each in short]
        yield Topic(name, (f"`{name}` is the short name of", *aligned(rows, indent="  ")))


def settings_called(name: str, table: BackendTable) -> Iterator[Topic]:
    """The settings that another tool calls so, in the same meaning."""
    rows = [
        (f"{owner}.{path}", *in_short(field))
        for owner, fields in setting_tables(table)
        for group, inner in (("", fields), *((f"{f.name}.", f.fields) for f in fields if f.fields))
        for ours in [standard_names([field.name for field in inner]).get(name)]
        for path, field in [*((f"{group}{f.name}", f) for f in inner if f.name == ours)]
    ]
    if rows:
        ours = rows[0][0].rpartition(".")[2]
        said = f"`{name}` is called `{ours}` here, and accepted as a name of"
        more = f"`agentc explain {rows[0][0]}` says more"
        yield Topic(name, (said, *aligned(rows, indent="  "), more))


def inputs_called(name: str) -> Iterator[Topic]:
    """The inputs of stages of that name."""
    rows = [
        (f"{kind.name}.{name}", " or ".join(accepted.name for accepted in role.accepts), role.doc)
        for kind in KINDS
        if (role := kind.role(name)) is not None
    ]
    if rows:
        yield Topic(name, (f"`{name}` is an input of", *aligned(rows, indent="  ")))


def settings_with_value(name: str, table: BackendTable) -> Iterator[Topic]:
    """The settings that take such a word."""
    rows = [
        (f"{owner}.{path}", *in_short(field))
        for owner, fields in setting_tables(table)
        for path, field in paths_of(fields)
        if isinstance(words := field.schema.get("enum"), list) and name in words
    ]
    if rows:
        more = f"`agentc explain {rows[0][0]}` says more"
        yield Topic(name, (f"`{name}` is a value of", *aligned(rows, indent="  "), more))


def paths_of(fields: Sequence[Field], before: str = "") -> Iterator[tuple[str, Field]]:
    for field in fields:
        yield before + field.name, field
        yield from paths_of(field.fields, f"{before}{field.name}.")


def in_short(field: Field) -> tuple[str, str]:
    kind = "mapping" if field.fields else type_text(dict(field.schema)).replace("`", "")
    return kind, "required" if field.required else f"default {_written(field)}"


def _written(field: Field) -> str:
    return json.dumps(field.default, ensure_ascii=False)

"""The generated pages: spec reference, backends with their support matrix; fields as lists."""

from __future__ import annotations

import json
from collections.abc import Iterable

from agentc.backend_api import (
    BackendTable,
    EnvironmentBackend,
    ServerBackend,
    StageBackend,
    entry_fields,
    software_of,
)
from agentc.backend_api.honoured import honoured_fields
from agentc.kinds import KINDS, Kind
from agentc.kinds.artifacts import ARTIFACT_TYPES
from agentc.kinds.field import Field
from agentc.reference.prose import folded, item
from agentc.schema.language import SHARING_FIELDS

_SIGNS = (
    ("minimum", ">="),
    ("exclusiveMinimum", ">"),
    ("maximum", "<="),
    ("exclusiveMaximum", "<"),
)


def field_list(fields: Iterable[Field]) -> list[str]:
    """Markdown lines of a list: one item for each field, nested ones by dotted path."""
    items = [line for declared in fields for line in _items(declared, "")]
    return items or ["No settings of its own."]


def type_text(schema: object) -> str:
    """A short reading of a JSON Schema fragment: `integer >= 1`, `"a" or "b"`."""
    if not isinstance(schema, dict):
        return "any"
    if "enum" in schema:
        return " or ".join(f"`{word}`" for word in schema["enum"])
    kinds = schema.get("type", "any")
    names = kinds if isinstance(kinds, list) else [kinds]
    text = " or ".join(str(name) for name in names)
    if names == ["array"]:
        text = f"list of {type_text(schema.get('items', {}))}"
    bounds = [f"{sign} {schema[word]}" for word, sign in _SIGNS if word in schema]
    return " ".join([text, *bounds])


def _items(declared: Field, prefix: str) -> list[str]:
    path = f"{prefix}{declared.name}"
    kind = "mapping" if declared.fields else type_text(dict(declared.schema))
    default = "**required**" if declared.required else f"default `{json.dumps(declared.default)}`"
    lines = item(f"`{path}`: {kind}; {default}; {declared.identity}. {declared.doc}")
    return lines + [line for sub in declared.fields for line in _items(sub, f"{path}.")]


def spec_page() -> str:
    """reference/spec.md: every stage kind with inputs, settings and product."""
    lines = [
        "# Spec reference: stage kinds",
        "",
        "Of each setting: its type, its default, its class and its meaning. The class says whether "
        "it enters the content key of its job:",
        "`semantic` does, `placement` and `metadata` never do. "
        "`agentc dev schema` prints the whole language as a JSON Schema for editors.",
        "",
    ]
    for kind in KINDS:
        lines += _kind_section(kind)
    lines += [
        "## Environments and servers: where they run",
        "",
        "Every entry of `environments` and `servers` takes these beside the settings of its "
        "backend ([backends.md](backends.md));",
        "[shared_servers.md](../design/shared_servers.md) says what they do.",
        "",
        *field_list(SHARING_FIELDS),
        "",
        "## Artifact types",
        "",
        "| type | version | rows | what it is |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {kind.name} | {kind.schema_version} | {kind.rows or ''} | {kind.doc} |"
        for kind in ARTIFACT_TYPES
    ]
    return "\n".join(lines) + "\n"


def backends_page(table: BackendTable) -> str:
    """reference/backends.md: each backend, and which settings each one honours."""
    lines = ["# Backends and what they honour", ""]
    lines += [
        *folded(
            "A setting that a spec gives and the chosen backend does not honour is an error that "
            "names the backends which would. Where a setting of placement says `yes, in the key`, "
            "it changes what that backend computes, and so the key of its result."
        ),
        "",
        "| backend | does | version | software |",
        "|---|---|---|---|",
    ]
    for backend in table:
        match backend:
            case StageBackend():
                does = f"stage `{backend.kind}`"
            case EnvironmentBackend():
                does = "environment" + ("" if backend.available else " (declared; no server yet)")
            case ServerBackend():
                does = "model server"
        software = ", ".join(each.name for each in software_of(backend))
        lines.append(f"| `{backend.id}` | {does} | {backend.version} | {software} |")
    lines += ["", "## Capabilities", ""]
    for backend in table:
        if backend.capabilities:
            lines += item(f"`{backend.id}`: {', '.join(sorted(backend.capabilities))}")
    for kind in KINDS:
        backends = table.stage_backends(kind.name)
        if kind.fields and backends:
            lines += ["", f"## Settings of `{kind.name}` by backend", ""]
            lines += _matrix(kind, backends)
    for backend in table:
        own = backend.options if isinstance(backend, StageBackend) else entry_fields(backend)
        if own:
            where = "options" if isinstance(backend, StageBackend) else "settings"
            lines += ["", f"## `{backend.id}`: {where} of its own", "", *folded(backend.doc), ""]
            lines += field_list(own)
        if isinstance(backend, EnvironmentBackend):
            for data in backend.data_sets:
                real = f"Real data: `agentc data fetch {data.name}`. {data.doc}"
                lines += ["", *folded(f"{real} Licence: {data.licence}.")]
    return "\n".join(lines) + "\n"


def _kind_section(kind: Kind) -> list[str]:
    lines = [f"## `kind: {kind.name}`", "", *folded(kind.doc), ""]
    made = [f"{each.name} (`{word}`)" for word, each in kind.products.items()]
    produced = kind.produces.name
    if made and kind.produces in kind.products.values():
        produced = f"by its `{kind.product_setting}` one of {', '.join(made)}"
    elif made:
        produced += f", or by its `{kind.product_setting}` {', '.join(made)}"
    lines += [*folded(f"Produces: {produced}."), ""]
    if kind.named is not None:
        accepts = ", ".join(accepted.name for accepted in kind.named.accepts)
        lines += [*folded(f"`{kind.named.name}`: {kind.named.doc} Each may name several, and takes "
                  f"any of {accepts}."), ""]  # fmt: skip
    if kind.roles:
        lines += ["Inputs:", ""]
        for role in kind.roles:
            many = "one or more" if role.many else "one"
            if role.optional:
                many += ", optional"
            accepts = " or ".join(accepted.name for accepted in role.accepts)
            lines += item(f"`{role.name}`: {accepts}; {many}. {role.doc}")
        lines.append("")
    if kind.uses:
        named = ", ".join(f"`{word}`" for word in kind.uses)
        lines += [f"Names an entry of each of these sections: {named}.", ""]
    return [*lines, *field_list(kind.fields), ""]


def _matrix(kind: Kind, backends: tuple[StageBackend, ...]) -> list[str]:
    honoured = {backend.id: honoured_fields(backend) for backend in backends}
    lines = [
        "| key | " + " | ".join(f"`{backend.id}`" for backend in backends) + " |",
        "|---|" + "---|" * len(backends),
    ]
    for declared in kind.fields:
        cells = [
            "-"
            if declared.name not in honoured[b.id]
            else "yes, in the key"
            if declared.name in b.decisive
            else "yes"
            for b in backends
        ]
        lines.append(f"| `{declared.name}` | " + " | ".join(cells) + " |")
    return lines

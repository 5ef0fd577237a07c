"""The part of the published schema about `use:`: which templates fit where, what their `with:`
takes, and which keys may be set beside it.

A template beside the spec is not known here; what stands beside its `use:` is left to
`agentc check`.
"""

from __future__ import annotations

from collections.abc import Mapping

from agentc.kinds.field import REQUIRED, Field, Json
from agentc.published.published import Schema, mapping_schema, text_schema
from agentc.schema import language
from agentc.schema.coerce import as_json
from agentc.source.tree import Mapping as MappingNode
from agentc.source.tree import Scalar
from agentc.templates.library import shipped_templates
from agentc.templates.template import Template


def use_properties(makes: str) -> Schema:
    """`use`, `with` and `append`, where a template makes a `makes`."""
    fitting = [template for template in shipped_templates() if template.makes == makes]
    names: list[Json] = [template.name for template in fitting]
    docs: list[Json] = [template.doc for template in fitting]
    shapes: list[Json] = [{"type": "string", "pattern": r"^\.{1,2}/"}]
    if names:
        shapes.insert(0, {"enum": names, "enumDescriptions": docs})
    return {
        "use": {"description": language.USE_KEYS["use"], "anyOf": shapes},
        "with": {"type": "object", "description": language.USE_KEYS["with"]},
        "append": {"type": "object", "description": language.USE_KEYS["append"]},
    }


def or_used(makes: str, plain: Schema) -> Schema:
    """A declaration written out, or one from a template."""
    return {
        # Editors offer it before it is known which of the two an entry becomes.
        "properties": {"use": use_properties(makes)["use"]},
        "if": {"required": ["use"]},
        "then": {"$ref": f"#/$defs/{used_name(makes)}"},
        "else": plain,
    }


def used_name(makes: str) -> str:
    """The name of a definition: a declaration from a template."""
    return f"used_{makes}"


def used_schema(makes: str, keys: Mapping[str, Schema]) -> Schema:
    """A declaration from a template. `keys` are the properties of a declaration written out; of
    a stage by kind, else under ""."""
    branches: list[Json] = [
        {
            "if": {"properties": {"use": {"const": template.name}}, "required": ["use"]},
            "then": _narrowed(template, keys),
        }
        for template in shipped_templates()
        if template.makes == makes
    ]
    schema: Schema = {
        "title": f"{makes} from a template",
        "type": "object",
        "properties": use_properties(makes),
        "required": ["use"],
    }
    return {**schema, "allOf": branches} if branches else schema


def _narrowed(template: Template, keys: Mapping[str, Schema]) -> Schema:
    fields = [
        Field(
            name=param.name,
            schema=param.rules,
            doc=param.doc or "",
            default=REQUIRED if param.default is None else as_json(param.default),
        )
        for param in template.params.values()
    ]
    taken: Schema = {"description": template.doc, **mapping_schema(fields)}
    title = f"from template {template.name}"
    required: list[Json] = ["with"] if any(field.required for field in fields) else []
    beside = _beside(template, keys)
    if beside is None:
        return {"title": title, "properties": {"with": taken}, "required": required}
    allowed = {**beside, **use_properties(template.makes), "with": taken}
    return {
        "title": title,
        "properties": allowed,
        "required": required,
        "additionalProperties": False,
    }


def _beside(template: Template, keys: Mapping[str, Schema]) -> Schema | None:
    """The keys that may stand beside `use`, or None when the body does not say by itself."""
    body = {entry.key.text: entry.value for entry in template.body.entries}
    if "use" in body:
        return None
    kind, repeat = body.get("kind"), body.get("repeat")
    if isinstance(kind, Scalar):
        return keys.get(kind.text)
    if isinstance(repeat, MappingNode):
        inner: Schema = {
            key: {"description": doc} for key, doc in language.REPEAT_INNER_KEYS.items()
        }
        rounds: Schema = {
            "type": "object",
            "description": language.REPEAT_KEYS["repeat"],
            "properties": inner,
            "additionalProperties": False,
        }
        return {"repeat": rounds, "doc": text_schema(language.REPEAT_KEYS["doc"])}
    return keys.get("")

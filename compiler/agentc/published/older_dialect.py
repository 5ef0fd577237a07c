"""The published schema in draft-07, which SchemaStore's catalogue and older editors ask for.

`json_schema.py` writes draft 2020-12; this says the same in the older words, without those that are
no keywords of JSON Schema.
"""

from __future__ import annotations

from agentc.kinds.field import Json
from agentc.published.fragments import Schema

DIALECT_07 = "http://json-schema.org/draft-07/schema#"
CATALOGUE_ID = "https://json.schemastore.org/agentc.json"
"""Where SchemaStore keeps a schema of that name; it asks for this `$id`."""
FILE_MATCH = ("*.agentc.yaml", "*.agentc.yml")
"""Names of files that can be nothing but specs: the catalogue holds for every project."""

_NO_KEYWORDS = frozenset({"x-identity", "enumDescriptions", "deprecated"})
_TABLES = frozenset({"properties", "definitions"})
"""Keywords whose keys are names of the language."""
_VALUES = frozenset({"const", "default", "enum"})


def in_draft_07(schema: Schema) -> Schema:
    """The same schema in draft-07, with the `$id` of the catalogue."""
    rewritten = _rewritten(schema)
    rest = {name: value for name, value in rewritten.items() if name not in ("$schema", "$id")}
    return {"$schema": DIALECT_07, "$id": CATALOGUE_ID, **rest}


def _rewritten(schema: Schema) -> Schema:
    found: Schema = {}
    for keyword, value in schema.items():
        if keyword in _NO_KEYWORDS:
            continue
        name = "definitions" if keyword == "$defs" else keyword
        if keyword == "$ref":
            assert isinstance(value, str)
            found["$ref"] = value.replace("#/$defs/", "#/definitions/")
        elif name in _TABLES and isinstance(value, dict):
            found[name] = {key: _any(each) for key, each in value.items()}
        else:
            found[name] = value if name in _VALUES else _any(value)
    if "$ref" in found and len(found) > 1:
        # Draft-07 looks at nothing that stands beside a reference.
        reference = {"$ref": found.pop("$ref")}
        both = found.get("allOf", [])
        assert isinstance(both, list)
        found["allOf"] = [reference, *both]
    return found


def _any(value: Json) -> Json:
    if isinstance(value, dict):
        return _rewritten(value)
    return [_any(item) for item in value] if isinstance(value, list) else value

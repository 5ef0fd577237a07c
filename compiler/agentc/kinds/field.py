"""Field and Role: what a stage kind, an environment, a server or a backend accepts.

A field carries a JSON Schema fragment (draft 2020-12), a default, an identity class and its
documentation; the published schema, structuring, keys and generated docs all derive from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from agentc.kinds.artifacts import ArtifactType

Json: TypeAlias = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
Identity: TypeAlias = Literal["semantic", "placement", "metadata"]
"""semantic fields enter content keys; placement and metadata never do (design.md, section 7)."""


HUB_ID = "^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?$"
"""A repository of a hub: `owner/name`, or a name alone."""


class _Required:
    """Marks a field without a default."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED = _Required()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Field:
    """One accepted key.

    `schema` is a JSON Schema fragment without `default` and `description` (both are added from
    here when the schema is published). `fields` is given for nested mappings with known keys.
    """

    name: str
    schema: Mapping[str, Json]
    doc: str
    default: Json | _Required = None
    identity: Identity = "semantic"
    fields: tuple[Field, ...] = ()

    @property
    def required(self) -> bool:
        return isinstance(self.default, _Required)


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """An input of a stage: a named edge that accepts artifacts of certain types. `aliases` are
    other tools' names for it, which a spec may use (with a note)."""

    name: str
    accepts: tuple[ArtifactType, ...]
    doc: str
    many: bool = False
    optional: bool = False
    aliases: tuple[str, ...] = ()


def integer(
    name: str,
    doc: str,
    default: int | None | _Required = None,
    *,
    minimum: int | None = None,
    maximum: int | None = None,
    nullable: bool = False,
    identity: Identity = "semantic",
) -> Field:
    """An integer field, inclusive bounds."""
    return _bounded("integer", name, doc, default, minimum, maximum, None, nullable, identity)


SEED_LIMIT = 2**31 - 1
"""The largest seed of a spec. NumPy takes 32 bits, some servers a signed integer of 32; seeds that
are counted up from one stay far below the unsigned limit."""


def seed(name: str, doc: str, default: int = 0) -> Field:
    """A seed: an integer that every library and server takes."""
    return integer(name, doc, default, minimum=0, maximum=SEED_LIMIT)


def number(
    name: str,
    doc: str,
    default: float | None | _Required = None,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    above: float | None = None,
    below: float | None = None,
    nullable: bool = False,
    identity: Identity = "semantic",
) -> Field:
    """A float field; `above` and `below` are exclusive bounds."""
    return _bounded(
        "number", name, doc, default, minimum, maximum, above, nullable, identity, below
    )


def boolean(name: str, doc: str, default: bool | None, *, identity: Identity = "semantic") -> Field:
    """A true/false field; one whose default is None can also be left to the backend by null."""
    types: Json = "boolean" if default is not None else ["boolean", "null"]
    return Field(name=name, schema={"type": types}, doc=doc, default=default, identity=identity)


def string(
    name: str,
    doc: str,
    default: str | None | _Required = None,
    *,
    nullable: bool = False,
    pattern: str | None = None,
    longest: int | None = None,
    blank: bool = False,
    identity: Identity = "semantic",
) -> Field:
    """A text field; `longest` is the most characters that it may have. Names, ids, paths and the
    like cannot be empty: `blank` says that this text may be, as words for people always may."""
    schema: dict[str, Json] = {"type": ["string", "null"] if nullable else "string"}
    if not (blank or pattern or identity == "metadata"):
        schema["minLength"] = 1
    if longest is not None:
        schema["maxLength"] = longest
    if pattern is not None:
        schema["pattern"] = pattern
    return Field(name=name, schema=schema, doc=doc, default=default, identity=identity)


def choice(
    name: str,
    doc: str,
    choices: tuple[str, ...],
    default: str | None | _Required = None,
    *,
    identity: Identity = "semantic",
) -> Field:
    """One of a closed list of words."""
    return Field(
        name=name,
        schema={"type": "string", "enum": list(choices)},
        doc=doc,
        default=default,
        identity=identity,
    )


def strings(
    name: str,
    doc: str,
    default: tuple[str, ...] | None = (),
    *,
    blank: bool = False,
    identity: Identity = "semantic",
) -> Field:
    """A list of texts; `blank`: of which some may be empty."""
    items: dict[str, Json] = {"type": "string"}
    if not (blank or identity == "metadata"):
        items["minLength"] = 1
    return Field(
        name=name,
        schema={"type": "array", "items": items},
        doc=doc,
        default=None if default is None else list(default),
        identity=identity,
    )


def group(
    name: str,
    doc: str,
    fields: tuple[Field, ...],
    *,
    nullable: bool = False,
    identity: Identity = "semantic",
) -> Field:
    """A nested mapping with known keys; absent means all its defaults (or null when nullable)."""
    return Field(
        name=name,
        schema={"type": ["object", "null"] if nullable else "object"},
        doc=doc,
        default=None if nullable else {},
        identity=identity,
        fields=fields,
    )


SECRET = "secret"
"""The key of a reference to a secret, and the function of expressions that makes one."""
SECRET_NAME = "^[A-Z_][A-Z0-9_]{0,99}$"
"""Names of environment variables. Small letters are left out: a key in them is no name."""


def secret(name: str, doc: str) -> Field:
    """A setting that takes a secret by reference, `{secret: NAME}`, or null. The value of the
    environment variable NAME reaches the job's process and nothing that is written."""
    inner = string(SECRET, "An environment variable of the shell that runs agentc.", REQUIRED,
                   pattern=SECRET_NAME, identity="placement")  # fmt: skip
    return group(name, doc, (inner,), nullable=True, identity="placement")


def is_secret(field: Field) -> bool:
    """Whether a field takes a reference to a secret."""
    return [inner.name for inner in field.fields] == [SECRET]


def _bounded(
    kind: str,
    name: str,
    doc: str,
    default: float | None | _Required,
    minimum: float | None,
    maximum: float | None,
    above: float | None,
    nullable: bool,
    identity: Identity,
    below: float | None = None,
) -> Field:
    schema: dict[str, Json] = {"type": [kind, "null"] if nullable else kind}
    if minimum is not None:
        schema["minimum"] = minimum
    if maximum is not None:
        schema["maximum"] = maximum
    if above is not None:
        schema["exclusiveMinimum"] = above
    if below is not None:
        schema["exclusiveMaximum"] = below
    return Field(name=name, schema=schema, doc=doc, default=default, identity=identity)

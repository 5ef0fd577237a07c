"""Syntax nodes: the declarations of a spec as written. Values are still nodes of the source
tree, since what they mean depends on params, rounds and the backend (see `agentc.passes`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agentc.diagnostics.diagnostic import Source, Span
from agentc.kinds import Kind
from agentc.source.tree import Entry, Node, Scalar
from agentc.source.tree import Mapping as MappingNode


@dataclass(frozen=True, slots=True, kw_only=True)
class ParamDecl:
    """A typed setting of the spec. `settings` holds what was given of `language.PARAM_FIELDS`."""

    name: Scalar
    settings: Mapping[str, Entry]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceDecl:
    """An environment or a server: a backend and its settings."""

    name: Scalar
    backend: Entry | None
    settings: MappingNode
    """All that it says, its `backend` included; checked once the backend is known."""
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptDecl:
    """A prompt; `settings` holds what was given of `language.PROMPT_FIELDS`."""

    name: Scalar
    settings: Mapping[str, Entry]
    examples: Node | None
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StageDecl:
    """A stage, or a model (a stage of kind `model`). `kind` is None when the spec names none that
    exists; then nothing else of the stage was read, and references to it are not errors."""

    name: Scalar
    kind: Kind | None
    span: Span
    backend: Node | None = None
    doc: Node | None = None
    roles: Mapping[str, Entry] = field(default_factory=dict)
    uses: Mapping[str, Entry] = field(default_factory=dict)
    fields: Mapping[str, Entry] = field(default_factory=dict)
    options: Mapping[str, Entry] = field(default_factory=dict)
    placement: Mapping[str, Entry] = field(default_factory=dict)
    keys: Mapping[str, Span] = field(default_factory=dict)
    """Where each top-level key of the stage stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CarryDecl:
    """A name inside a repeat: `start` in round 1, the previous round's `next` afterwards. Either
    may be a list."""

    name: Scalar
    start: Node
    next: Node


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatDecl:
    """Rounds of stages. `rounds` is None when missing or broken (reported already); `until` is the
    rule by which they stop, if there is one."""

    name: Scalar
    rounds: Node | None
    carry: tuple[CarryDecl, ...]
    stages: Mapping[str, StageDecl]
    span: Span
    until: Node | None = None
    broken: bool = False
    """Whether its stages or what it carries could not be read (reported): a name that is not
    there may be one of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """A whole spec as written. Sections keep their written order."""

    source: Source
    span: Span
    name: Node | None = None
    description: Node | None = None
    paper: Node | None = None
    params: Mapping[str, ParamDecl] = field(default_factory=dict)
    matrix: Node | None = None
    models: Mapping[str, StageDecl] = field(default_factory=dict)
    environments: Mapping[str, ResourceDecl] = field(default_factory=dict)
    servers: Mapping[str, ResourceDecl] = field(default_factory=dict)
    prompts: Mapping[str, PromptDecl] = field(default_factory=dict)
    software: Node | None = None
    defaults: Mapping[str, Entry] = field(default_factory=dict)
    stages: Mapping[str, StageDecl | RepeatDecl] = field(default_factory=dict)
    discrepancies: Node | None = None
    claims: Mapping[str, Entry] = field(default_factory=dict)
    budget: Node | None = None
    track: Node | None = None
    search: Node | None = None
    scales: tuple[str, ...] = ()
    broken: frozenset[str] = frozenset()
    """Sections of which something could not be read (reported): a name that is not there may be
    one of theirs."""
    misnamed: tuple[str, ...] = ()
    """Models and stages whose names are refused (reported)."""
    empty: Mapping[str, Span] = field(default_factory=dict)
    """Sections that are there and hold nothing, with the place of each."""
    templates: tuple[Path, ...] = ()
    """Files of the templates that were put in place."""

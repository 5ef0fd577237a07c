"""Reading: what the front end's passes transform, and the context that they share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agentc.backend_api import BackendTable
from agentc.diagnostics.sink import Sink
from agentc.diagnostics.span import Source
from agentc.front.expressions import Evaluator
from agentc.front.join_cells import SweptModule
from agentc.ir.module import Module
from agentc.ir.stopping import Ends
from agentc.kinds.field import Json
from agentc.source.tree import Node
from agentc.syntax.nodes import Spec
from agentc.templates.library import TemplateLibrary


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One spec on its way from a tree to a module: a field for each level, as in `passes.Unit`.

    `axes` are the swept params with the values that each has, by its place on the axis.
    """

    source: Source
    tree: Node
    spec: Spec | None = None
    cells: tuple[SweptModule, ...] = ()
    axes: Mapping[str, Mapping[int, Json]] = field(default_factory=dict)
    module: Module | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontContext:
    """`params` are the texts of `-p name=value`; `scale` is the one that was asked for; `ends` says
    where rounds have stopped."""

    params: Mapping[str, str]
    table: BackendTable
    sink: Sink
    directory: Path
    scale: str | None
    evaluator: Evaluator
    library: TemplateLibrary
    ends: Ends = field(default_factory=dict)

"""Unit, what passes transform, and PassContext, what every pass may ask for besides it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from agentc.backend_api import BackendTable
from agentc.diagnostics import Sink
from agentc.ir.module import Module
from agentc.lock.references import OutsideReferences
from agentc.plan.job import Plan
from agentc.source.files import Boundary
from agentc.syntax.nodes import Spec


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendChoice:
    """Which backend a stage got and why; `rejected` pairs the others with a reason each."""

    stage: str
    backend: str
    reason: str
    rejected: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One experiment on its way from syntax to plan."""

    spec: Spec
    module: Module | None = None
    plan: Plan | None = None
    choices: tuple[BackendChoice, ...] = ()
    notes: tuple[str, ...] = field(default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class PassContext:
    """`directory` is the folder of the spec: relative paths in it are meant from there.
    `references` answers for the world outside of the spec, and notes what was asked."""

    table: BackendTable
    sink: Sink
    directory: Path
    references: OutsideReferences = field(default_factory=OutsideReferences)
    allowed: tuple[Path, ...] = ()
    """Directories besides the spec's own that it may name."""
    model_folders: tuple[Path, ...] = ()
    """Those of the user's configuration, where models are looked for too."""

    @property
    def boundary(self) -> Boundary:
        """Which files of this machine the spec may name."""
        return Boundary(self.directory, self.allowed, self.model_folders)

"""PassContext: what every pass may ask for besides the unit it transforms."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from agentc.backend_api import BackendTable
from agentc.diagnostics import Sink
from agentc.lock.references import OutsideReferences
from agentc.source.boundary import Boundary


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

    @property
    def boundary(self) -> Boundary:
        """Which files of this machine the spec may name."""
        return Boundary(self.directory, self.allowed)

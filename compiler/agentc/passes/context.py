"""PassContext: what every pass may ask for besides the unit it transforms."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agentc.backend_api import BackendTable
from agentc.diagnostics import Sink


@dataclass(frozen=True, slots=True, kw_only=True)
class PassContext:
    """`directory` is the folder of the spec: relative paths in it are meant from there."""

    table: BackendTable
    sink: Sink
    directory: Path

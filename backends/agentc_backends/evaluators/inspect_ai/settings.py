"""Settings of `benchmark.inspect`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentc.program.settings import setting


# fmt: off
@dataclass(frozen=True, kw_only=True)  # beside another base: no slots
class InspectOptions:
    """Options of the backend."""

    params: Mapping[str, Any] = setting(
        "Values that the tasks' functions take, by their names; one that no task takes fails "
        "the stage.", {})
    epochs: int = setting(
        "How often each sample is asked, each time with a seed of its own (the "
        "stage's, the next one, ...); in place of what the task says.", 1, minimum=1)
    system: str | None = setting(
        "A system message before all others; null: as the task says.", None, blank=True)
# fmt: on

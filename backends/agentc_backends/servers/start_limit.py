"""The setting of how long a model's server may take to start."""

from __future__ import annotations

from dataclasses import dataclass

from agentc.backend_api import OptionView
from agentc.program.settings import setting


# fmt: off
@dataclass(frozen=True, kw_only=True)  # beside another base: no slots
class StartLimit:
    """How long a server may take to start."""

    start_minutes: float = setting(
        "Minutes that the server may take from its start to its first reply: reading weights from "
        "a slow file system, capturing graphs. Then its job fails.", 5.0, above=0,
        identity="placement")
# fmt: on


def start_limit(options: OptionView) -> float:
    """The limit in seconds."""
    return 60.0 * options.number("start_minutes")

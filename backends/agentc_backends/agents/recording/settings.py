"""Options of backends whose episodes are played by external programs."""

from __future__ import annotations

from dataclasses import dataclass

from agentc.program.settings import setting


# fmt: off
@dataclass(frozen=True, kw_only=True)
class RecordedOptions:
    """What all of them have."""

    episode_s: float = setting(
        "Seconds that an episode may take; one that takes longer is ended, and is an error.",
        1800.0, above=0, identity="placement")

"""Options of `rollout.verifiers`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentc.program.settings import setting
from agentc_backends.agents.recording.settings import RecordedOptions


# fmt: off
@dataclass(frozen=True, kw_only=True)
class TasksetOptions(RecordedOptions):
    """How a taskset is played."""

    harness: Mapping[str, Any] = setting(
        "Settings of the harness, by verifiers' names: `{id: \"null\"}` is its chat loop. Empty: "
        "what the taskset's environment names, else that loop.", {})

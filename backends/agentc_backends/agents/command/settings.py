"""Options of `rollout.command`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentc.program.settings import setting
from agentc_backends.agents.common.settings import PromptSeeds
from agentc_backends.agents.recording.settings import RecordedOptions


# fmt: off
@dataclass(frozen=True, kw_only=True)
class CommandOptions(PromptSeeds, RecordedOptions):
    """The program, and what it receives."""

    run: str | None = setting(
        "A Python file, relative to the spec: the agent. It is run once for each episode "
        "(docs/external.md).", None)
    command: tuple[str, ...] = setting(
        "In place of `run`, the words of a command. List your files that it names in "
        "`sources`.", (), schema={"type": "array", "items": {"type": "string"}})
    sources: tuple[str, ...] = setting(
        "Further files of text that it imports or reads, relative to the spec. It finds them, and "
        "itself, under the same names in the folder that it is started in.", ())
    params: Mapping[str, Any] = setting("Parameters passed to it, by names of its own.", {})
    requirements: str | None = setting(
        "The lock of the software that it runs in, relative to the spec; it holds httpx2, "
        "starlette and uvicorn besides, which the job needs.", None)

"""What a spec may write of a taskset of verifiers. Neighbour: `backend.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentc_backends.environments.server.settings import setting


# fmt: off
@dataclass(frozen=True, slots=True, kw_only=True)
class TasksetSettings:
    taskset: str = setting(
        "Its id, as verifiers has it: the name of a module that the software holds or that "
        "`sources` has, or of a taskset that comes with verifiers.")
    splits: Mapping[str, Any] = setting(
        "Tasks by their places in the taskset, from 0; those of each split: `{range: [first, "
        "end]}` (the end is left out), `{ids: [...]}` or `{file: path}`, each with `except: "
        "[other split]`. Splits that share a task are refused.")
    sources: tuple[str, ...] = setting(
        "Files of text, relative to the spec, that are the taskset's modules or are read by them.",
        ())
    config: Mapping[str, Any] = setting("The taskset's own settings, by its own names.", {})
    reward: Mapping[str, Any] = setting("What its rewards mean.", {})
    max_turns: int = setting("Replies of an episode, where the stage does not say.", 30, minimum=1)

"""Prompts of jobs, as plans have them."""

from __future__ import annotations

from typing import Any

from agentc.kinds.interaction import OBSERVATION_PREFIX


def prompt(**values: Any) -> dict[str, Any]:
    """A job's `config["prompt"]`: no words but those that are given."""
    return {
        "instruction": "",
        "acknowledgement": None,
        "examples": [],
        "reply_format": "react",
        "system": None,
        "observation_prefix": OBSERVATION_PREFIX,
        "output_marker": None,
        "memory": "all",
        **values,
    }

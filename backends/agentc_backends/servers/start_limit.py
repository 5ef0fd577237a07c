"""The setting of how long a model's server may take to start."""

from __future__ import annotations

from agentc.backend_api import OptionView
from agentc.kinds.field import Field, number

_NAME = "start_minutes"


def start_field(minutes: float) -> Field:
    """The field; `minutes` is its default."""
    return number(
        _NAME,
        "Minutes that the server may take from its start to its first reply: reading weights from "
        "a slow file system, capturing graphs. Then its job fails.",
        minutes,
        above=0,
        identity="placement",
    )


def start_limit(options: OptionView) -> float:
    """The limit in seconds."""
    return 60.0 * options.number(_NAME)

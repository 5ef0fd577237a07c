"""Options of `measure.episodes`."""

from __future__ import annotations

from dataclasses import dataclass

from agentc.program.settings import setting
from agentc_backends.agents.common.prompts import ReplyFormat
from agentc_backends.agents.common.settings import ActionRules


# fmt: off
@dataclass(frozen=True, kw_only=True)
class MeasureOptions(ActionRules):
    """How the actions of trajectories are found."""

    reply_format: ReplyFormat = setting(
        "The prompt's, under which the trajectories were played: with the others it says what "
        "`loops` takes for an action. Nodes of trees have their actions.", "react")

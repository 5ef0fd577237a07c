"""Options of `search.mcts`, and what its program reads of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agentc.kinds.search import TreeGrowth
from agentc.program.settings import setting
from agentc_backends.agents.common.actions import ActionSpace, ActionSpan


# fmt: off
@dataclass(frozen=True, kw_only=True)
class ReplyOptions:
    """What replies mean."""

    action_span: ActionSpan = setting(
        "What belongs to an action: `line`, the rest of its line; `rest`, everything after the "
        "first `Action:`; `last`, everything after the last `Action:`, without a number before it "
        "(Agent-R's code); `after_last`, the same as it is.", "line")
    action_space: ActionSpace = setting("Whether a space must follow `Action:`.", "optional")
    no_action: Literal["observe", "last_line"] = setting(
        "A reply without an action: `observe` informs the agent, and the environment stays as it "
        "is; `last_line` takes the reply's last line for the action (Agent-R's code).", "observe")
    turn_numbers: Literal["keep", "drop"] = setting(
        "`Action 1:` and `Thought 1:` in replies: `keep` them, so that they are no marks, or "
        "`drop` the number before siblings are compared and replies are kept, and take for the "
        "action what follows the last `Action 1:` (Agent-R's code).", "keep")
    invalid_message: str = setting(
        "What the agent receives after a reply without an action.",
        "Invalid format. The reply must contain an action in the form that was asked for.",
        blank=True)
    invalid_reward: Literal["keep", "zero"] = setting(
        "What a reply without an action does to the reward so far: `keep` it, or start again from "
        "`zero`, as rollouts can (it matters where the best reward of an episode counts).", "keep")


@dataclass(frozen=True, kw_only=True)
class SearchOptions(ReplyOptions):
    """The same, and how the environment is brought to nodes."""

    sessions_per_tree: int | None = setting(
        "Environment sessions that a tree holds at once; null: one for each child where states "
        "can be copied, else one.", None, minimum=1, identity="placement")
    same_state: Literal["observation", "reward"] = setting(
        "What must be equal when actions are carried out again: the `observation` too, or only "
        "the `reward`, where an environment's texts vary (ScienceWorld).", "observation",
        identity="placement")
# fmt: on


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRules(ReplyOptions, TreeGrowth):
    """How trees of a stage grow: the shape of the search, and what replies mean."""

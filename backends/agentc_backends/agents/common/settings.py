"""Options of backends that let a policy act, and what programs of jobs read of them: how the action
of a reply is found, what becomes of replies without one, under which prompts episodes are played.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agentc.kinds.interaction import PROMPT_OF_TASK, InvalidReplies, RepeatedEpisodes
from agentc.program.settings import only_with, only_with_input, setting, unless
from agentc_backends.agents.common.actions import ActionSpace, ActionSpan

_SOME_INVALID = unless(
    "no_action", "whole_reply", because="`no_action: whole_reply` takes every reply for an action"
)


# fmt: off
@dataclass(frozen=True, kw_only=True)
class ActionRules:
    """How the action of a reply is found."""

    action_span: ActionSpan = setting(
        "What belongs to an action: `line`, the rest of its line; `rest`, everything after the "
        "first `Action:` (ETO's code); `last`, everything after the last `Action:`, without a "
        "number before it (Agent-R's search); `after_last`, the same as it is (Agent-R's "
        "evaluation).", "line")
    action_space: ActionSpace = setting(
        "Whether a space must follow `Action:` (ETO: required for WebShop and ScienceWorld, "
        "optional for ALFWorld).", "optional")
    no_action: Literal["invalid", "whole_reply"] = setting(
        "A reply without `Action:` is `invalid` (see on_invalid), or the `whole_reply` is the "
        "action, an empty one included (Agent-R's evaluation).", "invalid")


@dataclass(frozen=True, kw_only=True)
class ActionOptions(ActionRules):
    """The same, and what becomes of replies without one."""

    invalid_message: str = setting(
        "What the agent receives after a reply without an action.",
        "Invalid format. The reply must contain an action in the form that was asked for.",
        blank=True, only_if=(_SOME_INVALID, only_with(
            "on_invalid", "observe", because="`on_invalid: fail` shows the agent nothing")))
    invalid_reward: Literal["keep", "zero"] = setting(
        "What an invalid reply that is observed does to the reward so far: `keep` it, or start "
        "again from `zero` (ETO's code; it matters where the best reward of an episode counts).",
        "keep", only_if=(_SOME_INVALID, only_with(
            "on_invalid", "observe", because="`on_invalid: fail` ends with the lowest reward")))


@dataclass(frozen=True, kw_only=True)
class ReplyRules(ActionOptions, InvalidReplies):
    """What replies mean, by options and by settings of the stage."""


@dataclass(frozen=True, kw_only=True)
class PromptSeeds:
    """Under which prompts the attempts at a task are played."""

    prompt_per_attempt: bool = setting(
        "Give each attempt at a task a prompt seed of its own (prompt_seed + attempt); false: all "
        "attempts see the same prompt, as self-play pairs need.", True, only_if=PROMPT_OF_TASK)


@dataclass(frozen=True, kw_only=True)
class RolloutOptions(PromptSeeds, ActionOptions):
    """Options of `rollout.react`."""

    same_state: Literal["observation", "reward"] = setting(
        "What must be equal when a prefix is played again: the `observation` too, or only "
        "the `reward`, where an environment's texts vary (ScienceWorld).", "observation",
        identity="placement", only_if=only_with_input(
            "prefixes", because="without `prefixes` every episode begins at its start"))
# fmt: on


@dataclass(frozen=True, kw_only=True)
class PlannedEpisodes(PromptSeeds, RepeatedEpisodes):
    """Which episodes a program plays."""

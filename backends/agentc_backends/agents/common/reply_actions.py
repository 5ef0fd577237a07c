"""How the action of a reply is found, and what becomes of a reply without one: the options of
whoever plays episodes, and how their declarations read them.

`parse.py` does it; `rollout/turns.py` has the settings at run time.
"""

from __future__ import annotations

from agentc.backend_api import StageView
from agentc.ir.module import Prompt
from agentc.kinds.field import Field, Json, choice, string
from agentc_backends.agents.common.lowering import marks_actions
from agentc_backends.agents.common.parse import ACTION_SPANS

_INVALID = ("on_invalid", "invalid_message", "invalid_reward")
_WHOLE: dict[str, Json] = {
    "no_action": "whole_reply",
    "on_invalid": "observe",
    "invalid_message": "",
    "invalid_reward": "keep",
}
"""What a job is told where every reply is an action."""

ACTION_OPTIONS: tuple[Field, ...] = (
    choice("action_span", "What belongs to an action: `line`, the rest of its line; `rest`, "
           "everything after the first `Action:` (ETO's code); `last`, everything after the last "
           "`Action:`, without a number before it (Agent-R's search); `after_last`, the same as it "
           "stands (Agent-R's evaluation).", ACTION_SPANS, "line"),
    choice("action_space", "Whether a space must follow `Action:` (ETO: required for WebShop and "
           "ScienceWorld, optional for ALFWorld).", ("optional", "required"), "optional"),
    choice("no_action", "A reply without `Action:` is `invalid` (see on_invalid), or the "
           "`whole_reply` is the action, an empty one included (Agent-R's evaluation).",
           ("invalid", "whole_reply"), "invalid"),
    string("invalid_message", "What the agent is told after a reply without an action.",
           "Invalid format. The reply must contain an action in the form that was asked for.",
           blank=True),
    choice("invalid_reward", "What an invalid reply that is observed does to the reward so far: "
           "`keep` it, or start again from `zero` (ETO's code; it matters where the best reward "
           "of an episode counts).", ("keep", "zero"), "keep"),
)  # fmt: skip


def action_config(view: StageView, prompt: Prompt | None) -> dict[str, Json]:
    """How the action of a reply is found; what cannot matter is not read."""
    if prompt is not None and prompt.reply_format == "text":
        for name in (*_INVALID, "no_action", "action_span", "action_space"):
            view.leave(name, "the prompt's `reply_format: text` takes all of every reply")
        return {**_WHOLE, "action_span": "rest", "action_space": "optional"}
    if prompt is not None and prompt.reply_format == "tools":
        for name in ("no_action", "action_span", "action_space"):
            view.leave(name, "the prompt's `reply_format: tools` has an action in a call alone")
        told = _told_of_invalid(view)
        return {**told, "no_action": "invalid", "action_span": "rest", "action_space": "optional"}
    config = _invalid(view)
    config["action_span"] = view.text("action_span")
    config["action_space"] = "optional"
    if marks_actions(prompt):
        config["action_space"] = view.text("action_space")
    else:
        view.leave("action_space", "the prompt's `reply_format: action_only` has no `Action:`")
    return config


def _invalid(view: StageView) -> dict[str, Json]:
    """What becomes of replies without an action; what cannot matter is not read."""
    config: dict[str, Json] = {**_WHOLE, "no_action": view.text("no_action")}
    if config["no_action"] == "whole_reply":
        for name in _INVALID:
            view.leave(name, "`no_action: whole_reply` takes every reply for an action")
        return config
    return config | _told_of_invalid(view)


def _told_of_invalid(view: StageView) -> dict[str, Json]:
    """The same where some replies are invalid."""
    config: dict[str, Json] = {**_WHOLE, "no_action": "invalid"}
    config["on_invalid"] = view.text("on_invalid")
    if config["on_invalid"] == "observe":
        config["invalid_message"] = view.text("invalid_message")
        config["invalid_reward"] = view.text("invalid_reward")
    else:
        view.leave("invalid_message", "`on_invalid: fail` tells the agent nothing")
        view.leave("invalid_reward", "`on_invalid: fail` ends with the lowest reward")
    return config

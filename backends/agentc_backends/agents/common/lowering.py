"""What declarations of agents' stages read alike: the prompt, the split, what is cut of `prefixes`,
where the environment is (a server, or the job's own process), and how the action of a reply is
found."""

from __future__ import annotations

from collections.abc import Mapping

from agentc.backend_api import LeaseDraft, LowerContext, SoftwareEnvironment, StageView
from agentc.ir.module import Prompt
from agentc.kinds.field import Field, Json, boolean, choice, string
from agentc.kinds.interaction import OBSERVATION_PREFIX, PrefixSettings
from agentc.program.settings import declared_in
from agentc_backends.agents.common.actions import ACTION_SPANS
from agentc_backends.software import LIGHT

PROMPT_PER_ATTEMPT = boolean(
    "prompt_per_attempt",
    "Give each attempt at a task a prompt seed of its own (prompt_seed + attempt); false: all "
    "attempts see the same prompt, as self-play pairs need.",
    True,
)
"""An option of whoever lets a policy play whole episodes."""


def environment_leases(
    view: StageView, context: LowerContext, software: SoftwareEnvironment = LIGHT
) -> tuple[LeaseDraft, ...]:
    """The lease of the stage's environment for a program that runs in `software`, which holds what
    LIGHT does, where `environment_at` says, and of the servers that the environment asks. No key
    depends on where it is: the program meets the same sessions."""
    inside_of = (LIGHT, software) if view.text("environment_at") == "auto" else ()
    return context.environment_leases(view, inside_of)


def episode_config(
    view: StageView, facts: Mapping[str, Json], prompt: Prompt | None
) -> dict[str, Json]:
    """What a policy's episodes are told alike, whoever learns from them; `facts` are those of the
    environment."""
    return {
        "split": checked_split(view, facts["splits"]),
        "limit": view.get("limit"),
        "decode": view.get("decode"),
        "max_turns": view.get("max_turns") or facts["max_turns"],
        "on_overflow": view.text("on_overflow"),
        "seed": view.integer("seed"),
        "prompt": prompt_config(prompt),
        "reward_range": facts["reward_range"],
        "success_at": facts["success_at"],
    }


def prompt_config(prompt: Prompt | None) -> dict[str, Json]:
    """A prompt object as job programs read it (`prompts.read_prompt`)."""
    if prompt is None:
        return {
            "instruction": "",
            "acknowledgement": None,
            "examples": [],
            "reply_format": "react",
        }
    # At their defaults these are no part of a key, as before there was such a setting.
    more: dict[str, Json] = {}
    if prompt.system is not None:
        more["system"] = prompt.system
    if prompt.observation_prefix != OBSERVATION_PREFIX:
        more["observation_prefix"] = prompt.observation_prefix
    if prompt.output_marker is not None:
        # Not under its own name, which stood for seen text without the blanks around it.
        more["output_split"] = prompt.output_marker
    if prompt.memory != "all":
        more["memory"] = prompt.memory
    return more | {
        "instruction": prompt.instruction,
        "acknowledgement": prompt.acknowledgement,
        "examples": [
            [{"role": role, "content": content} for role, content in example]
            for example in prompt.examples
        ],
        "reply_format": prompt.reply_format,
    }


def marks_actions(prompt: Prompt | None) -> bool:
    """Whether replies of the prompt's format announce their action by `Action:`."""
    return prompt is None or prompt.reply_format in ("react", "react_inline")


def refuse_tools(view: StageView, prompt: Prompt | None, why: str) -> None:
    """For stages that have no place for calls of functions; `why` says so."""
    if prompt is not None and prompt.reply_format == "tools":
        view.refuse(
            "prompt",
            f"{why}, and replies of prompt `{prompt.name}` call a function (`reply_format: tools`)",
            capability="tools",
            fix="give this stage a prompt with another `reply_format`",
        )


def refuse_marker(view: StageView, prompt: Prompt | None) -> None:
    """For stages that keep one text of a reply: a marker would part it in two."""
    if prompt is not None and prompt.output_marker is not None:
        view.refuse(
            "prompt",
            f"a tree keeps one text of each reply, and `output_marker` of prompt `{prompt.name}` "
            "parts what is generated from what is seen",
            capability="output_marker",
            fix="give this stage a prompt without `output_marker`",
        )


def checked_split(view: StageView, splits: Json) -> str:
    """The stage's split; refused when the environment declares splits and this is none of them."""
    split = view.text("split")
    if isinstance(splits, (list, tuple)) and splits and split not in splits:
        names = ", ".join(str(name) for name in splits)
        view.refuse(
            "split",
            f"the environment has no split {split!r}; it has {names}",
            fix="name one of them",
        )
    return split


def prefix_config(view: StageView) -> dict[str, Json]:
    """The settings of the cut, refused where they leave no length."""
    shortest, longest = view.integer("prefix.shortest"), view.get("prefix.longest")
    if isinstance(longest, int) and longest < shortest:
        view.refuse(
            "prefix.longest",
            f"no prefix has {shortest} turns at least and {longest} at most",
            fix=f"set it to {shortest} or more",
        )
    return view.config_of(PrefixSettings, "prefix")


_CUT = [each.name for each in declared_in(PrefixSettings)]


def leave_prefix(view: StageView, why: str) -> None:
    """The same of a stage without `prefixes`, where nothing is cut; `why` says so."""
    view.config_of(PrefixSettings, "prefix", without=dict.fromkeys(_CUT, why))


_INVALID = ("on_invalid", "invalid_message", "invalid_reward")
_WHOLE: dict[str, Json] = {
    "no_action": "whole_reply",
    "on_invalid": "observe",
    "invalid_message": "",
    "invalid_reward": "keep",
}
"""The settings of a job in which every reply is an action."""

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
    string("invalid_message", "What the agent receives after a reply without an action.",
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
        told = _invalid_reply_settings(view)
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
    return config | _invalid_reply_settings(view)


def _invalid_reply_settings(view: StageView) -> dict[str, Json]:
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

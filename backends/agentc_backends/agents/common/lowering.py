"""What declarations of agents' stages read alike: the prompt, the split, what is cut of `prefixes`,
where the environment is (a server, or the job's own process), and how the action of a reply is
found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agentc.backend_api import LeaseDraft, LowerContext, Software, StageView
from agentc.ir.module import Prompt
from agentc.kinds.field import Json
from agentc.kinds.interaction import OBSERVATION_PREFIX, SampledEpisodes
from agentc.kinds.settings import fields_of
from agentc.program.settings import declared_in
from agentc_backends.agents.common.settings import ActionOptions, ActionRules, ReplyRules
from agentc_backends.software import LIGHT


def environment_leases(
    view: StageView, context: LowerContext, software: Software = LIGHT
) -> tuple[LeaseDraft, ...]:
    """The lease of the stage's environment for a program that runs in `software`, which holds what
    LIGHT does, where `environment_at` says, and of the servers that the environment asks. No key
    depends on where it is: the program meets the same sessions."""
    inside_of = (LIGHT, software) if view.text("environment_at") == "auto" else ()
    return context.environment_leases(view, inside_of)


def episode_config(
    view: StageView,
    facts: Mapping[str, Json],
    prompt: Prompt | None,
    settings: type[SampledEpisodes] = SampledEpisodes,
) -> dict[str, Json]:
    """The config of a policy's episodes, for rollouts and for online RL; `facts` are those of the
    environment."""
    check_split(view, facts["splits"])
    return {
        **view.config_of(settings),
        "decode": view.get("decode"),  # numbers as the spec writes them
        "max_turns": view.get("max_turns") or facts["max_turns"],
        "prompt": prompt_config(prompt),
        "reward_range": facts["reward_range"],
        "success_at": facts["success_at"],
    }


_NO_PROMPT: dict[str, Json] = {
    "instruction": "",
    "acknowledgement": None,
    "examples": [],
    "reply_format": "react",
    "system": None,
    "observation_prefix": OBSERVATION_PREFIX,
    "output_marker": None,
    "memory": "all",
}


def prompt_config(prompt: Prompt | None) -> dict[str, Json]:
    """A prompt object as job programs read it (`prompts.read_prompt`)."""
    if prompt is None:
        return _NO_PROMPT
    return {
        "instruction": prompt.instruction,
        "acknowledgement": prompt.acknowledgement,
        "examples": [
            [{"role": role, "content": content} for role, content in example]
            for example in prompt.examples
        ],
        "reply_format": prompt.reply_format,
        "system": prompt.system,
        "observation_prefix": prompt.observation_prefix,
        "output_marker": prompt.output_marker,
        "memory": prompt.memory,
    }


def prompt_identity(prompt: Prompt | None) -> dict[str, Json]:
    """What a prompt adds to keys: like settings, nothing at its default, so that a new member
    leaves the keys of prompts without it as they are."""
    config = prompt_config(prompt)
    return {name: value for name, value in config.items() if value != _NO_PROMPT[name]}


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


def check_split(view: StageView, splits: Json) -> None:
    """Refuse a split that is none of those that the environment declares."""
    split = view.text("split")
    if isinstance(splits, (list, tuple)) and splits and split not in splits:
        names = ", ".join(str(name) for name in splits)
        view.refuse(
            "split",
            f"the environment has no split {split!r}; it has {names}",
            fix="name one of them",
        )


def check_prefix(view: StageView) -> None:
    """Refuse a `prefix` that leaves no length."""
    shortest, longest = view.integer("prefix.shortest"), view.get("prefix.longest")
    if isinstance(longest, int) and longest < shortest:
        view.refuse(
            "prefix.longest",
            f"no prefix has {shortest} turns at least and {longest} at most",
            fix=f"set it to {shortest} or more",
        )


def placement_of(view: StageView, settings: type) -> dict[str, Json]:
    """The placement of a program by a dataclass of settings; where its environment is decides a
    lease (`environment_leases`)."""
    placement = view.config_of(settings, placement=True)
    placement.pop("environment_at", None)
    return placement


ACTION_OPTIONS = fields_of(ActionOptions)

_ALL_ACTIONS: dict[str, Json] = {
    "action_span": "rest",
    "action_space": "optional",
    "no_action": "invalid",
    "on_invalid": "observe",
    "invalid_message": "",
    "invalid_reward": "keep",
}
"""What a job has of settings that have no effect."""


def action_config(view: StageView, prompt: Prompt | None) -> dict[str, Json]:
    """How the action of a reply is found; what cannot matter is not read."""
    reply_format = "react" if prompt is None else prompt.reply_format
    names, why = _WITHOUT_MARK.get(reply_format, ((), ""))
    because = f"the prompt's `reply_format: {reply_format}` {why}"
    config = view.config_of(ReplyRules, without=dict.fromkeys(names, because))
    if reply_format == "text":
        config["no_action"] = "whole_reply"
    return {**_ALL_ACTIONS, **config}


_WITHOUT_MARK: dict[str, tuple[Iterable[str], str]] = {
    "text": (_ALL_ACTIONS, "takes all of every reply"),
    "tools": ([each.name for each in declared_in(ActionRules)], "has its action only in a call"),
    "action_only": (["action_space"], "has no `Action:`"),
}
"""By the format of replies, settings of actions without an effect, and why."""

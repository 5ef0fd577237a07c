"""Declares `search.mcts` and lowers a search stage to its one job."""

from __future__ import annotations

from agentc.backend_api import JobDraft, LowerContext, StageBackend, StageView
from agentc.kinds.artifacts import SEARCH_TREES
from agentc.kinds.field import Field, Json, choice, integer, string
from agentc_backends.agents.common.actions import ACTION_SPANS
from agentc_backends.agents.common.lowering import (
    checked_split,
    environment_leases,
    leave_prefix,
    marks_actions,
    prefix_config,
    prompt_config,
    refuse_marker,
)
from agentc_backends.software import LIGHT

OPTIONS: tuple[Field, ...] = (
    choice("action_span", "What belongs to an action: `line`, the rest of its line; `rest`, "
           "everything after the first `Action:`; `last`, everything after the last `Action:`, "
           "without a number before it (Agent-R's code); `after_last`, the same as it stands.",
           ACTION_SPANS, "line"),
    choice("action_space", "Whether a space must follow `Action:`.", ("optional", "required"),
           "optional"),
    choice("no_action", "A reply without an action: `observe` tells the agent, and the environment "
           "stays as it is; `last_line` takes the reply's last line for the action (Agent-R's "
           "code).", ("observe", "last_line"), "observe"),
    choice("turn_numbers", "`Action 1:` and `Thought 1:` in replies: `keep` them, so that they are "
           "no marks, or `drop` the number before siblings are compared and replies are kept, and "
           "take for the action what follows the last `Action 1:` (Agent-R's code).",
           ("keep", "drop"), "keep"),
    string("invalid_message", "What the agent receives after a reply without an action.",
           "Invalid format. The reply must contain an action in the form that was asked for.",
           blank=True),
    choice("invalid_reward", "What a reply without an action does to the reward so far: `keep` it, "
           "or start again from `zero`, as rollouts can (it matters where the best reward of an "
           "episode counts).", ("keep", "zero"), "keep"),
    integer("sessions_per_tree", "Environment sessions that a tree holds at once; null: one for "
            "each child where states can be copied, else one.", None, minimum=1, nullable=True,
            identity="placement"),
    choice("same_state", "What must be equal when actions are carried out again: the `observation` "
           "too, or the `reward` alone, where an environment's texts vary (ScienceWorld).",
           ("observation", "reward"), "observation", identity="placement"),
)  # fmt: skip


def lower(stage: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    """One job that grows the trees."""
    facts = context.environment_facts(stage)
    prompt = context.prompt(stage)
    children = stage.integer("children")
    if children > 1 and stage.number("decode.temperature") == 0:
        stage.refuse(
            "decode.temperature",
            f"greedy replies are all the same, so {children} children would be one",
            fix="raise the temperature, or set `children: 1`",
        )
    config: dict[str, Json] = {
        "split": checked_split(stage, facts["splits"]),
        "limit": stage.get("limit"),
        "depth": stage.integer("depth"),
        "iterations": stage.integer("iterations"),
        "children": children,
        "c_uct": stage.number("c_uct"),
        "dedup": stage.text("dedup"),
        "decode": stage.get("decode"),
        "on_overflow": stage.text("on_overflow"),
        "flatten_observations": stage.flag("flatten_observations"),
        "seed": stage.integer("seed"),
        "tie_seed": stage.integer("tie_seed"),
        "prompt": prompt_config(prompt),
        "reward_range": facts["reward_range"],
        "success_at": facts["success_at"],
        "action_span": "rest",
        "no_action": "observe",
        "action_space": "optional",
        "turn_numbers": "keep",
        # `last_line` and `text` leave an empty reply, and that alone, without an action.
        "invalid_message": stage.text("invalid_message"),
        "invalid_reward": stage.text("invalid_reward"),
    }
    refuse_marker(stage, prompt)
    form = "react" if prompt is None else prompt.reply_format
    if form in ("text", "tools"):
        why = "takes all of every reply" if form == "text" else "has an action in a call alone"
        for name in ("action_span", "no_action"):
            stage.leave(name, f"the prompt's `reply_format: {form}` {why}")
    else:
        config["action_span"] = stage.text("action_span")
        config["no_action"] = stage.text("no_action")
    if marks_actions(prompt):
        config["action_space"] = stage.text("action_space")
        config["turn_numbers"] = stage.text("turn_numbers")
    else:
        stage.leave("turn_numbers", f"the prompt's `reply_format: {form}` has no marks")
        stage.leave("action_space", f"the prompt's `reply_format: {form}` has no `Action:`")
    inputs = {"policy": stage.inputs["policy"]}
    prefixes = stage.inputs.get("prefixes", ())
    if prefixes:
        inputs["prefixes"] = prefixes
        config["prefix"] = prefix_config(stage)
        stage.leave("prompt_seed", "a tree takes the prompt of the trajectory that it goes on from")
    else:
        config["prompt_seed"] = stage.integer("prompt_seed")
        leave_prefix(stage, "without `prefixes` every tree begins at the start of its task")
    reach = stage.text("reach")
    able = facts["capabilities"]
    assert isinstance(able, list)
    if reach == "fork" and not {"fork", "snapshot"} & set(map(str, able)):
        stage.refuse(
            "reach",
            f"the environment {facts['name']} cannot copy its state",
            capability="fork",
            fix="`reach: auto` copies where it can be done and replays where not",
        )
    if reach == "replay":
        stage.leave("verify_share", "`reach: replay` copies nothing that could be verified")
    return (
        JobDraft(
            kind="search",
            backend=BACKEND.id,
            version=BACKEND.version,
            software=LIGHT,
            program=("-m", "agentc_backends.agents.search.job_search"),
            view=stage,
            config=config,
            placement={
                "reach": reach,
                "verify_share": 0.0 if reach == "replay" else stage.number("verify_share"),
                "same_state": stage.text("same_state"),
                "sessions_per_tree": stage.get("sessions_per_tree"),
                "concurrency": stage.integer("concurrency"),
                "error_budget": stage.number("error_budget"),
            },
            inputs=inputs,
            produces=SEARCH_TREES.name,
            leases=(context.server_lease(stage, "policy"), *environment_leases(stage, context)),
            extra_identity={"prompt": prompt_config(prompt)},
            contract={"reward_range": facts["reward_range"]},
            resume=True,
        ),
    )


BACKEND = StageBackend(
    id="search.mcts",
    kind="search",
    version=2,
    doc="Agent-R's tree search: children of a node in one batch, many trees in flight, states of "
    "the environment copied where it can; the same trees at any concurrency, and an interrupted "
    "search continues with the next tree.",
    software=LIGHT,
    lower=lower,
    capabilities=frozenset(
        {
            *("react", "react_inline", "action_only", "text", "tools"),
            *("resume", "infrastructure_errors", "fork"),
        }
    ),
    options=OPTIONS,
)

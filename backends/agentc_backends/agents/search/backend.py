"""Declares `search.mcts` and lowers a search stage to its one job."""

from __future__ import annotations

from agentc.backend_api import JobDraft, LowerContext, StageBackend, StageView
from agentc.ir.module import Prompt
from agentc.kinds.artifacts import SEARCH_TREES
from agentc.kinds.field import Json
from agentc.kinds.search import SearchedTrees, SearchSettings
from agentc.kinds.settings import fields_of
from agentc_backends.agents.common.lowering import (
    check_prefix,
    check_split,
    environment_leases,
    marks_actions,
    placement_of,
    prompt_config,
    prompt_identity,
    refuse_marker,
)
from agentc_backends.agents.search.settings import ReplyOptions, SearchOptions
from agentc_backends.software import LIGHT


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
    refuse_marker(stage, prompt)
    check_split(stage, facts["splits"])
    config: dict[str, Json] = {
        "action_span": "rest",
        "no_action": "observe",
        "action_space": "optional",
        "turn_numbers": "keep",
        **stage.config_of(SearchedTrees),
        # `last_line` and `text` leave an empty reply, and that alone, without an action.
        **stage.config_of(ReplyOptions, without=_without(prompt)),
        "decode": stage.get("decode"),  # numbers as the spec writes them
        "prompt": prompt_config(prompt),
        "reward_range": facts["reward_range"],
        "success_at": facts["success_at"],
    }
    inputs = {"model": stage.inputs["model"]}
    if prefixes := stage.inputs.get("prefixes", ()):
        inputs["prefixes"] = prefixes
        check_prefix(stage)
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
                "verify_share": 0.0,
                **placement_of(stage, SearchSettings),
                **placement_of(stage, SearchOptions),
            },
            inputs=inputs,
            produces=SEARCH_TREES.name,
            leases=(context.server_lease(stage, "model"), *environment_leases(stage, context)),
            extra_identity={"prompt": prompt_identity(prompt)},
            contract={"reward_range": facts["reward_range"]},
            resume=True,
        ),
    )


def _without(prompt: Prompt | None) -> dict[str, str]:
    """Options without an effect under the prompt's format of replies, and why."""
    form = "react" if prompt is None else prompt.reply_format
    without: dict[str, str] = {}
    if form in ("text", "tools"):
        why = "takes all of every reply" if form == "text" else "has its action only in a call"
        for name in ("action_span", "no_action"):
            without[name] = f"the prompt's `reply_format: {form}` {why}"
    if not marks_actions(prompt):
        without["turn_numbers"] = f"the prompt's `reply_format: {form}` has no marks"
        without["action_space"] = f"the prompt's `reply_format: {form}` has no `Action:`"
    return without


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
    options=fields_of(SearchOptions),
)

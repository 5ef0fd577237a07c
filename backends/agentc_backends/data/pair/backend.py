"""Declares `pair.contrast` and lowers a pair stage to its one job."""

from __future__ import annotations

from agentc.backend_api import JobDraft, LowerContext, StageBackend, StageView
from agentc.kinds.artifacts import PREFERENCE_PAIRS
from agentc.kinds.field import Json
from agentc_backends.software import LIGHT


def lower(stage: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    """One job. A setting that the chosen sources or limits leave without effect is not read, so
    that the compiler says so, and why."""
    view = stage.scoped()
    sources = view.text("sources")
    expert = stage.inputs.get("expert", ())
    rollouts = stage.inputs.get("rollouts", ())
    if not rollouts:
        view.refuse(
            "rollouts",
            "it pairs explored trajectories, and the stage names no `rollouts`",
            fix="name the rollouts; ranked candidates are `turns`",
        )
    elif sources != "self" and not expert:
        view.refuse(
            "sources",
            f"`sources: {sources}` needs trajectories of an expert",
            fix="give the stage an `expert` input, or set `sources: self`",
        )
    extra_rounds, facts = _extra_rounds(view, sources)
    config: dict[str, Json] = {
        "sources": sources,
        "margin": view.number("margin"),
        "on_tie": view.text("on_tie"),
        "on_null": view.text("on_null"),
        "directions": view.text("directions") if sources != "self" else "both",
        "max_extra_rounds": extra_rounds,
        "prompt_from": view.text("prompt_from") if sources != "self" else "winner",
        "max_per_task": view.get("max_per_task"),
        "contrast": view.text("contrast"),
    }
    if sources == "self":
        for path in ("directions", "prompt_from"):
            view.leave(path, "`sources: self` pairs nothing with an expert")
    if config["max_per_task"] is None:
        view.leave("seed", "nothing is drawn without `max_per_task`")
    config["seed"] = view.integer("seed") if config["max_per_task"] is not None else 0
    config |= _chosen(view, sources)
    on_empty = view.text("on_empty")
    if on_empty != "error":
        config["on_empty"] = on_empty
    inputs = {"rollouts": rollouts}
    if expert:
        inputs["expert"] = expert
    return (
        JobDraft(
            kind="pair",
            backend=BACKEND.id,
            version=BACKEND.version,
            software=LIGHT,
            program=("-m", "agentc_backends.data.pair.job_pair"),
            view=view,
            config=config,
            inputs=inputs,
            produces=PREFERENCE_PAIRS.name,
            local=True,
            contract={"min_rows": 0} if on_empty == "publish" else {},
            extra_identity=facts,
        ),
    )


def _extra_rounds(view: StageView, sources: str) -> tuple[Json, dict[str, Json]]:
    """Where rejected sides are cut, and what that adds to the identity: the declared default is
    ETO's, whose pairs have an expert. No other paper cuts, so pairs without one are whole unless
    the spec itself sets a number."""
    rounds = view.get("max_extra_rounds")
    if sources != "self" or rounds is None or view.is_set("max_extra_rounds"):
        return rounds, {}
    return None, {"max_extra_rounds": None}


def _chosen(view: StageView, sources: str) -> dict[str, Json]:
    """Which side may be chosen, and how far above the other; what is at its default stands in no
    plan, as before there was such a setting."""
    margin_is, at_least = view.text("margin_is"), view.get("chosen_at_least")
    if margin_is == "at_least" and view.number("margin") == 0:
        view.refuse(
            "margin_is",
            "equal rewards differ by at least 0, and neither side of them can be chosen",
            fix="set a margin above 0, or `margin_is: above`",
        )
    config: dict[str, Json] = {}
    if margin_is != "above":
        config["margin_is"] = margin_is
    if at_least is not None:
        config["chosen_at_least"] = at_least
    if sources == "expert":
        view.leave("chosen", "`sources: expert` pairs no explored trajectories with each other")
    elif view.text("chosen") != "any":
        config["chosen"] = "best"
    return config


BACKEND = StageBackend(
    id="pair.contrast",
    kind="pair",
    version=1,
    doc="ETO's contrastive pairs: explored against expert, or against each other, by reward.",
    software=LIGHT,
    lower=lower,
    capabilities=frozenset({"expert", "self"}),
    inputs=("expert", "rollouts"),
)

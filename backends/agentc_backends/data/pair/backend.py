"""Declares `pair.contrast` and lowers a pair stage to its one job."""

from __future__ import annotations

from agentc.backend_api import JobDraft, LowerContext, StageBackend, StageView
from agentc.kinds.artifacts import PREFERENCE_PAIRS
from agentc.kinds.field import Json
from agentc.kinds.interaction import PairSettings
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
    if view.text("margin_is") == "at_least" and view.number("margin") == 0:
        view.refuse(
            "margin_is",
            "equal rewards differ by at least 0, and neither side of them can be chosen",
            fix="set a margin above 0, or `margin_is: above`",
        )
    drawn = view.get("max_per_task") is not None
    undrawn = {} if drawn else {"seed": "nothing is drawn without `max_per_task`"}
    extra_rounds, facts = _extra_rounds(view, sources)
    config: dict[str, Json] = {
        "directions": "both",
        "prompt_from": "winner",
        "seed": 0,
        **view.config_of(PairSettings, without=undrawn),
        "max_extra_rounds": extra_rounds,
    }
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
            contract={"min_rows": 0} if view.text("on_empty") == "publish" else {},
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

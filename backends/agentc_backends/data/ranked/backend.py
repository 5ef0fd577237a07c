"""Declares `pair.ranked` and lowers a pair stage over ranked turns to its one job."""

from __future__ import annotations

from agentc.backend_api import JobDraft, LowerContext, StageBackend, StageView
from agentc.kinds.artifacts import PREFERENCE_PAIRS
from agentc.kinds.field import Json
from agentc.kinds.settings import fields_of
from agentc_backends.data.ranked.settings import RankedOptions, RankedRules
from agentc_backends.software import LIGHT

_OF_TRAJECTORIES = (
    "on_tie", "on_null", "directions", "max_extra_rounds", "prompt_from", "sources",
    "max_per_task", "contrast", "margin_is", "chosen_at_least", "chosen",
)  # fmt: skip


def lower(stage: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    """One job. A setting that the others leave without effect is not read, so that the compiler
    says so, and why."""
    view = stage.scoped()
    turns = stage.inputs.get("turns", ())
    if not turns:
        view.refuse(
            "turns",
            "it draws pairs from ranked candidates, and the stage names no `turns`",
            fix="name a `rank` stage",
        )
    ranking, draw, keep = (view.text(name) for name in ("ranking", "draw", "keep"))
    without: dict[str, str] = {}
    if ranking == "random":
        without["margin"] = "a random ranking has no distances"
    elif keep == "all":
        without["margin"] = "`keep: all` keeps pairs whatever their distance"
    if ranking != "random" and draw == "best_worst":
        without["seed"] = "nothing is drawn"
    elif ranking != "random" and view.text("order") == "published":
        without["seed"] = "`order: published` has its own"
    config: dict[str, Json] = {
        "pairs_per_turn": 1,
        "replacement": True,
        "order": "hash",
        "margin": 0.0,
        "seed": 0,
        **view.config_of(RankedRules, without=without),
    }
    if config["length_ratio"] is not None and config["order"] == "published":
        view.refuse(
            "length_ratio",
            "`order: published` draws as the released script does, which knows no lengths",
            fix="leave `order` out, or length_ratio",
        )
    return (
        JobDraft(
            kind="pair",
            backend=BACKEND.id,
            version=BACKEND.version,
            software=LIGHT,
            program=("-m", "agentc_backends.data.ranked.job_ranked_pairs"),
            view=view,
            config=config,
            inputs={"turns": turns},
            produces=PREFERENCE_PAIRS.name,
            local=True,
            contract={"min_rows": 0} if view.text("on_empty") == "publish" else {},
        ),
    )


BACKEND = StageBackend(
    id="pair.ranked",
    example="{turns: rank, expert: null, rollouts: null}",
    kind="pair",
    version=1,
    doc="SWEET-RL's pairs of single turns: candidates of the upper half of a ranking against those "
    "of the lower.",
    software=LIGHT,
    lower=lower,
    options=fields_of(RankedOptions),
    inputs=("turns",),
    unused=dict.fromkeys(
        _OF_TRAJECTORIES, "it is about whole trajectories; ranked turns are paired by advantage"
    ),
)

"""Declares `pair.ranked` and lowers a pair stage over ranked turns to its one job."""

from __future__ import annotations

from agentc.backend_api import JobDraft, LowerContext, StageBackend, StageView
from agentc.kinds.artifacts import PREFERENCE_PAIRS
from agentc.kinds.field import Field, Json, boolean, choice, integer, number
from agentc_backends.software import LIGHT

OPTIONS: tuple[Field, ...] = (
    choice("ranking", "What ranks the candidates of a turn: their `advantage`, or `random`, the "
           "control that tells what the ranking adds to having pairs at all.",
           ("advantage", "random"), "advantage"),
    choice("draw", "`halves`: a chosen one from the upper half, a rejected one from the lower; "
           "`best_worst`: the one pair of the best and the worst, with `length_ratio` the worst of "
           "like length.", ("halves", "best_worst"), "halves"),
    integer("pairs_per_turn", "Pairs that are drawn of each turn.", 4, minimum=1),
    boolean("replacement", "A pair may be drawn again, as published; false: each of a turn's pairs "
            "is another one.", True),
    boolean("dedup", "Keep pairs with the same texts behind the same prompt once; false: as "
            "published.", True),
    number("length_ratio", "Draw pairs of like length alone: the longer side has at most so many "
           "times the characters of the shorter, so that with 1.5 questions meet questions and "
           "answers answers; null: any pair.", None, minimum=1, nullable=True),
    choice("keep", "Which drawn pairs are kept: `distinct`, those whose sides differ in advantage "
           "and in text and are not empty; `all`, as the released script does, ties, equal texts "
           "and empty replies too.", ("distinct", "all"), "distinct"),
    choice("order", "`hash`: each turn draws by a seed of its own; `published`: one generator with "
           "the seed 42 draws for all turns in order and shuffles the pairs, as the released "
           "script does.", ("hash", "published"), "hash"),
)  # fmt: skip
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
    for name in _OF_TRAJECTORIES:
        view.leave(name, "it is about whole trajectories; ranked turns are paired by advantage")
    config = {**_draws(view), **_seeded(view)}
    if (length_ratio := view.get("length_ratio")) is not None:
        config["length_ratio"] = length_ratio
        if config["order"] == "published":
            view.refuse(
                "length_ratio",
                "`order: published` draws as the released script does, which knows no lengths",
                fix="leave `order` out, or length_ratio",
            )
    if view.text("keep") == "all":
        config["keep"] = "all"
    on_empty = view.text("on_empty")
    if on_empty != "error":
        config["on_empty"] = on_empty
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
            contract={"min_rows": 0} if on_empty == "publish" else {},
        ),
    )


def _draws(view: StageView) -> dict[str, Json]:
    config: dict[str, Json] = {
        "ranking": view.text("ranking"),
        "draw": view.text("draw"),
        "dedup": view.flag("dedup"),
        "margin": 0.0,
        "pairs_per_turn": 1,
        "replacement": True,
    }
    if config["ranking"] == "random":
        view.leave("margin", "a random ranking has no distances")
    elif view.text("keep") == "all":
        view.leave("margin", "`keep: all` keeps pairs whatever their distance")
    else:
        config["margin"] = view.number("margin")
    if config["draw"] == "best_worst":
        for name in ("pairs_per_turn", "replacement"):
            view.leave(name, "`draw: best_worst` has one pair of a turn")
    else:
        config["pairs_per_turn"] = view.integer("pairs_per_turn")
        config["replacement"] = view.flag("replacement")
    return config


def _seeded(view: StageView) -> dict[str, Json]:
    """The order of the draws, and their seed where anything is drawn by it."""
    random = view.text("ranking") == "random"
    drawn = view.text("draw") == "halves"
    order = "hash"
    if drawn:
        order = view.text("order")
    else:
        view.leave("order", "`draw: best_worst` draws nothing")
    if random or (drawn and order == "hash"):
        return {"order": order, "seed": view.integer("seed")}
    view.leave("seed", "`order: published` has its own" if drawn else "nothing is drawn")
    return {"order": order, "seed": 0}


BACKEND = StageBackend(
    id="pair.ranked",
    kind="pair",
    version=1,
    doc="SWEET-RL's pairs of single turns: candidates of the upper half of a ranking against those "
    "of the lower.",
    software=LIGHT,
    lower=lower,
    options=OPTIONS,
    inputs=("turns",),
)

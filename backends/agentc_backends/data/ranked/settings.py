"""Settings of `pair.ranked`: its options, and what its program reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agentc.kinds.interaction import RewardMargin
from agentc.program.settings import setting, unless

_ONE_PAIR = unless("draw", "best_worst", because="`draw: best_worst` has one pair of a turn")


# fmt: off
@dataclass(frozen=True, kw_only=True)  # beside another base: no slots
class RankedOptions:
    """Options of the backend."""

    ranking: Literal["advantage", "random"] = setting(
        "What ranks the candidates of a turn: their `advantage`, or `random`, the "
        "control that says what the ranking adds to having pairs at all.", "advantage")
    draw: Literal["halves", "best_worst"] = setting(
        "`halves`: a chosen one from the upper half, a rejected one from the lower; "
        "`best_worst`: the one pair of the best and the worst, with `length_ratio` the worst of "
        "like length.", "halves")
    pairs_per_turn: int = setting(
        "Pairs that are drawn of each turn.", 4, minimum=1, only_if=_ONE_PAIR)
    replacement: bool = setting(
        "A pair may be drawn again, as published; false: each of a turn's pairs "
        "is another one.", True, only_if=_ONE_PAIR)
    dedup: bool = setting(
        "Keep pairs with the same texts behind the same prompt once; false: as published.", True)
    length_ratio: float | None = setting(
        "Draw only pairs of similar length: the longer side has at most this many times the "
        "characters of the shorter. With 1.5 a question is paired with a question and an answer "
        "with an answer; null: any pair.", None, minimum=1)
    keep: Literal["distinct", "all"] = setting(
        "Which drawn pairs are kept: `distinct`, those whose sides differ in advantage "
        "and in text and are not empty; `all`, as the released script does, ties, equal texts "
        "and empty replies too.", "distinct")
    order: Literal["hash", "published"] = setting(
        "`hash`: each turn draws by a seed of its own; `published`: one generator with "
        "the seed 42 draws for all turns in order and shuffles the pairs, as the released "
        "script does.", "hash",
        only_if=unless("draw", "best_worst", because="`draw: best_worst` draws nothing"))
# fmt: on


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedRules(RewardMargin, RankedOptions):
    """What the program reads."""

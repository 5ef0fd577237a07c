"""The keys of a repeat: its rounds, the rule by which they stop, what a round carries to the next.

Neighbours: `language.py`, which has the keys of all else that is no stage; `stage_structure.py`
reads repeats by these tables, `front/expand_repeat.py` unrolls them.
"""

from __future__ import annotations

from agentc.kinds.field import REQUIRED, Field, choice, group, integer, number, string
from agentc.kinds.metric_names import METRIC_PATTERN

REPEAT_KEYS: dict[str, str] = {"repeat": "Rounds of stages.", "doc": "A note for readers."}
ROUNDS = integer(
    "n", "Number of rounds, with `until` at most.", REQUIRED, minimum=1, maximum=10_000
)
UNTIL_FIELDS: tuple[Field, ...] = (
    string("stage", "The stage of this repeat that measures each round.", REQUIRED,
           identity="metadata"),
    string("metric", "What it measures: `reward`, `success`, `best_of(k)`, `pass_at(k)`, `loops`.",
           "reward", pattern=METRIC_PATTERN, identity="metadata"),
    choice("direction", "Whether more of it is better.", ("maximize", "minimize"), "maximize",
           identity="metadata"),
    number("reaches", "The rounds stop after the first that measures at least this; with "
           "`direction: minimize`, at most this.", nullable=True, identity="metadata"),
    integer("no_gain_for", "They stop after so many rounds in a row without a gain over the best "
            "round before.", nullable=True, minimum=1, identity="metadata"),
    number("min_gain", "A gain is more than this (`no_gain_for`).", 0.0, minimum=0,
           identity="metadata"),
)  # fmt: skip
UNTIL = group("until", "A rule by which the rounds stop before `n`, on what a stage of each round "
              "measures. No key depends on it.", UNTIL_FIELDS, identity="metadata")  # fmt: skip
REPEAT_INNER_KEYS: dict[str, str] = {
    "n": ROUNDS.doc,
    "until": UNTIL.doc,
    "carry": "Names that stand for a stage of the round before.",
    "stages": "The stages of one round.",
}
CARRY_KEYS: dict[str, str] = {
    "from": "The stage outside the repeat that round 1 takes; or a list, `[]` for none.",
    "next": (
        "The stage of this round that the next round takes, or a carried name; or a list: "
        "`[past, pairs]` as the `next` of `past` gathers `pairs` of all rounds."
    ),
}

"""Advantages of candidates from two models' scores (SWEET-RL, arXiv 2503.15478, equation 3): the
mean log-probability of a reply's tokens under the critic, less that under the reference. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

Row: TypeAlias = Mapping[str, Any]
Normalisation: TypeAlias = Literal["turn", "trajectory", "none"]


def advantage(critic: Row, reference: Row, normalisation: Normalisation) -> float:
    """Of scores `{"sum", "n"}`. Of one turn the means by turn and by trajectory are the same; with
    `none` the sums are compared."""
    if normalisation == "none":
        return float(critic["sum"] - reference["sum"])
    return float(critic["sum"] / critic["n"] - reference["sum"] / reference["n"])


def recorded(turn: Row) -> dict[str, Any]:
    """The row of scores of a turn by the policy that its candidates were drawn from."""
    scores = [{"sum": c["logprob_sum"], "n": c["logprob_n"]} for c in turn["candidates"]]
    return {"end": "scored" if scores else turn["end"], "scores": scores}


def rewarded_turn(
    turn: Row, critic: Row, reference: Row, normalisation: Normalisation
) -> dict[str, Any]:
    """A row of turns.jsonl from both models' rows of scores. A turn that lacks those of one model
    has no candidates."""
    for scores in (critic, reference):
        if scores["end"] != "scored":
            lost = {"candidates": [], "candidates_unique": 0, "spread": 0.0}
            return {**turn, **lost, "end": scores["end"]}
    candidates = [
        {
            **candidate,
            "advantage": advantage(ours, theirs, normalisation),
            "critic": dict(ours),
            "reference": dict(theirs),
        }
        for candidate, ours, theirs in zip(
            turn["candidates"], critic["scores"], reference["scores"], strict=True
        )
    ]
    values = [each["advantage"] for each in candidates]
    return {**turn, "candidates": candidates, "spread": max(values) - min(values)}

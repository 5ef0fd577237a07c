"""Advantages of candidates from two models' scores (SWEET-RL, arXiv 2503.15478, equation 3): the
mean log-probability of a reply's tokens under the critic, less that under the reference; or what a
head says of it (table 3, "Regression Head"). Pure."""

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
            return _without_candidates(turn, scores["end"])
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
    return _with_spread(turn, candidates)


def valued_turn(turn: Row, values: Row) -> dict[str, Any]:
    """A row of turns.jsonl from a head's values of the turn's candidates. Nothing is subtracted:
    every candidate of a turn continues the same history."""
    if values["end"] != "scored":
        return _without_candidates(turn, values["end"])
    pairs = zip(turn["candidates"], values["values"], strict=True)
    return _with_spread(
        turn, [{**each, "advantage": value, "critic": {"value": value}} for each, value in pairs]
    )


def _without_candidates(turn: Row, end: str) -> dict[str, Any]:
    return {**turn, "candidates": [], "candidates_unique": 0, "spread": 0.0, "end": end}


def _with_spread(turn: Row, candidates: list[dict[str, Any]]) -> dict[str, Any]:
    values = [each["advantage"] for each in candidates]
    return {**turn, "candidates": candidates, "spread": max(values) - min(values)}

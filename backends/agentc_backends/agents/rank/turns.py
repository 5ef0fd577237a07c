"""Rows of turns.jsonl from scores of candidates: the advantages that two models' scores give
(SWEET-RL, equation 3), or what a head says (table 3, "Regression Head"), and the facts that tell
whether the critic says anything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from statistics import fmean
from typing import Any, TypeAlias

from agentc.program.artifact_files import TURNS_FILE
from agentc.program.job import Job, write_rows
from agentc_backends.agents.common.critic_scores import Normalisation, advantage
from agentc_backends.agents.common.failures import FatalError

Row: TypeAlias = Mapping[str, Any]


def write_ranked_turns(job: Job, rewarded: Iterable[dict[str, Any]]) -> None:
    """Write turns.jsonl, one row after the other, and state its facts. Raises FatalError where no
    turn was ranked."""
    spreads: list[float] = []
    places: list[float] = []
    rows = 0

    def counted() -> Iterator[dict[str, Any]]:
        nonlocal rows
        for turn in rewarded:
            rows += 1
            if turn["candidates"]:
                spreads.append(turn["spread"])
                places.extend(_rank_of_taken(turn))
            yield turn

    write_rows(job.out / TURNS_FILE, counted())
    if not spreads:
        raise FatalError(
            f"not one of {rows} turns could be ranked: their prompts are longer than the "
            "critic's window, or nothing was sampled"
        )
    job.facts(
        ranked=len(spreads),
        spread_mean=fmean(spreads),
        flat=spreads.count(0),
        rank_of_taken=round(fmean(places), 4) if places else None,
    )


def _rank_of_taken(turn: dict[str, Any]) -> Iterator[float]:
    """Where the critic puts what the episode went on with, among candidates of that text and the
    others: 0 is the worst, 1 the best; nothing where the episode's reply was not drawn again."""
    own = [c["advantage"] for c in turn["candidates"] if c["text"] == turn["taken"]]
    others = [c["advantage"] for c in turn["candidates"] if c["text"] != turn["taken"]]
    if own and others:
        yield fmean((own[0] > other) + (own[0] == other) / 2 for other in others)


def sampler_scores(turn: Row) -> dict[str, Any]:
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

"""Health of a run: what says that a stage learned nothing, from the facts that jobs record.

Plain rules over the facts of one stage; `agentc run`, `agentc status` and the report show what they
give. docs/health.md lists the thresholds. Standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

OVERFLOW_SHARE = 0.2
"""Episodes that end because the prompt fills the context."""
INVALID_SHARE = 0.2
"""Turns without an action."""
CUT_SHARE = 0.2
"""Replies that end at max_tokens, or where the context is full."""
LIMIT_SHARE = 0.5
"""Episodes that end at the limit of their turns."""
ERROR_SHARE = 0.05
"""Episodes lost to infrastructure errors."""
FEWEST_EPISODES = 5
"""Rewards of fewer episodes are not judged."""
DROPPED_SHARE = 0.1
"""Rows that are left out of a training, or cut."""
DISTINCT_SHARE = 0.5
"""Pairs that differ from all others."""
NEAR_ZERO_LOSS = 1e-4
"""Mean loss of the last quarter of the logged steps."""
FEWEST_STEPS = 3
"""A loss is judged from this number of logged steps on."""
FEWEST_CLIPPED = 10
"""Gradients are always clipped: in this number of logged steps at least, and in all of them."""

MAX_PRINTED = 5
"""Findings that `agentc run` prints."""


@dataclass(frozen=True)
class StageFacts:
    """What a finished job recorded. `kind` is that of its stage, `facts` those of its manifest."""

    stage: str
    kind: str
    facts: Mapping[str, Any]


@dataclass(frozen=True)
class HealthFinding:
    """One thing that is wrong with a stage: `what`, with its number and unit, and `where` to
    look."""

    stage: str
    what: str
    where: str

    @property
    def text(self) -> str:
        return f"{self.what}; {self.where}"

    @property
    def line(self) -> str:
        return f"{self.stage}: {self.text}"


Found = Iterator[tuple[str, str]]
Rule = Callable[[StageFacts], Found]


def stage_facts(stage: str, manifest: Mapping[str, Any]) -> StageFacts:
    """The facts of a manifest (`artifact.json`)."""
    facts = manifest.get("facts")
    return StageFacts(
        stage, str(manifest.get("kind", "")), facts if isinstance(facts, dict) else {}
    )


def findings(stages: Sequence[StageFacts]) -> list[HealthFinding]:
    """What is wrong with the stages, the gravest first; equal ones in the order of the stages."""
    return [
        HealthFinding(stage.stage, what, where)
        for rule in RULES
        for stage in stages
        for what, where in rule(stage)
    ]


def finding_lines(found: Sequence[HealthFinding], more: str) -> list[str]:
    """Lines for people: the first findings, and how many more there are, which `more` shows."""
    lines = [each.line for each in found[:MAX_PRINTED]]
    if len(found) > MAX_PRINTED:
        lines.append(f"{len(found) - MAX_PRINTED} more: {more}")
    return lines


def without_numbers(text: str) -> str:
    """What texts have in common that differ by their numbers only."""
    return re.sub(r"\d[\d.e+-]*", "#", text)


def _unchanged(stage: StageFacts) -> Found:
    if stage.facts.get("unchanged") is True:
        yield (
            f"the policy is equal to its start: no weight changed in {_steps(stage)}",
            "compare lr, the loss in logs/steps.jsonl, and the rows that were trained",
        )


def _unchanged_model(stage: StageFacts) -> Found:
    if stage.facts.get("kept_model") is True:
        yield (
            "nothing was trained, the model is its start ({})".format(
                str(stage.facts.get("kept_because", "no rows")).strip()
            ),
            "look at the stages that its data come from",
        )


def _filter(stage: StageFacts) -> Found:
    facts = stage.facts
    played, kept = _count(facts, "played"), _count(facts, "played_kept")
    if not played or "min_reward" not in facts:
        return
    least = f"min_reward {facts['min_reward']:g}"
    if kept == 0:
        best = facts.get("played_best")
        told = "" if best is None else f", best {best:g}"
        yield (
            f"0 of {played} episodes reach {least}{told}",
            "only rows that no policy played are trained; lower min_reward, or sample more",
        )
    elif kept == played >= FEWEST_EPISODES:
        yield (
            f"all of {played} episodes reach {least}: the filter leaves none out",
            "raise min_reward",
        )


def _pairs(stage: StageFacts) -> Found:
    facts = stage.facts
    if facts.get("pairs") == 0:
        yield (
            "no pairs: 0 pairs of %d comparisons"
            % sum(_count(facts, name) for name in ("win", "tie", "lose")),
            "compare the rewards of the explored episodes",
        )
    pairs, distinct = _count(facts, "pairs"), facts.get("distinct")
    if pairs > 1 and isinstance(distinct, int) and distinct <= DISTINCT_SHARE * pairs:
        yield (
            f"identical pairs: {pairs} pairs, {distinct} of them distinct",
            "look at pairs.jsonl; sample at a higher temperature, or over more tasks",
        )
    identical, rows = _count(facts, "identical"), _count(facts, "rows")
    if identical:
        yield (
            f"identical pairs: both sides of {identical} of {rows} pairs are the same tokens",
            "they train nothing; look at pairs.jsonl, max_length and truncation",
        )


def _loss(stage: StageFacts) -> Found:
    losses = stage.facts.get("losses")
    if not isinstance(losses, dict):
        return
    steps, (unit, where) = _count(losses, "steps"), _log_of(losses)
    broken = _count(losses, "not_finite")
    if broken:
        yield f"the loss is NaN or infinite in {broken} of {steps} {unit}", where
    # The loss of a policy gradient is near zero wherever advantages have mean 0.
    if steps < FEWEST_STEPS or broken == steps or "per" in losses:
        return
    least, most, last = losses["least"], losses["most"], losses["last"]
    if most - least <= 1e-9 * max(1.0, abs(most)):
        yield f"the loss never changes: {most:.4g} in {steps} logged steps", where
    elif abs(last) < NEAR_ZERO_LOSS:
        yield (
            f"the loss is near zero: {last:.2g} in the last quarter of {steps} logged steps",
            "rows that are already known, or pairs that are already apart, train nothing",
        )


def _log_of(facts: Mapping[str, Any]) -> tuple[str, str]:
    """What a training logs, and where: its steps, or the iterations of a run of RL."""
    if "per" in facts:
        return str(facts["per"]), "look at curve.jsonl, and at the rewards of its episodes"
    return "logged steps", "look at logs/steps.jsonl"


def _gradients(stage: StageFacts) -> Found:
    norms = stage.facts.get("gradients")
    if not isinstance(norms, dict):
        return
    steps, clipped = _count(norms, "steps"), _count(norms, "clipped")
    broken, (unit, where) = _count(norms, "not_finite"), _log_of(norms)
    if broken:
        yield (
            f"the gradient is NaN or infinite in {broken} of {broken + steps} {unit}",
            where,
        )
    if steps >= FEWEST_STEPS and norms.get("most") == 0:
        yield f"the gradient is zero in all of {steps} {unit}", where
    elif clipped == steps >= FEWEST_CLIPPED:
        yield (
            "the gradient is clipped in all of %d logged steps, its least norm is %.3g"
            % (steps, norms["least"]),
            "raise max_grad_norm, or lower lr",
        )


def _ends(stage: StageFacts) -> Found:
    facts = stage.facts
    ends, episodes = facts.get("ends"), _count(facts, "episodes")
    if not isinstance(ends, dict) or not episodes:
        return
    for end, most, what, where in (
        (
            "overflow", OVERFLOW_SHARE, "end by overflow: the prompt fills the context",
            "raise the server's context, or lower max_turns and decode.max_tokens",
        ),
        (
            "error", ERROR_SHARE, "are lost to infrastructure errors",
            "look at `error` in trajectories.jsonl and at the logs of the servers",
        ),
        (
            "limit", LIMIT_SHARE, "end at the limit of their turns",
            "look at the episodes in the report; raise max_turns",
        ),
    ):  # fmt: skip
        count = _count(ends, end)
        if count > most * episodes:
            yield f"{_share(count, episodes, 'episodes')} {what}", where
    turns, invalid = _count(facts, "turns"), _count(facts, "invalid")
    if turns and invalid > INVALID_SHARE * turns:
        yield (
            f"{_share(invalid, turns, 'replies')} hold no action",
            "look at the episodes in the report, reply_format and decode.max_tokens",
        )
    stops = facts.get("stops")
    replies = sum(stops.values()) if isinstance(stops, dict) else 0
    cut = _count(stops, "length") if isinstance(stops, dict) else 0
    if replies and cut > CUT_SHARE * replies:
        yield (
            f"{_share(cut, replies, 'replies')} are truncated",
            "raise decode.max_tokens; check that the chat format ends replies",
        )


def _rewards(stage: StageFacts) -> Found:
    facts = stage.facts
    episodes, successes = _count(facts, "episodes"), _count(facts, "successes")
    least, most = facts.get("reward_least"), facts.get("reward_most")
    if episodes < FEWEST_EPISODES or least is None or most is None or successes == episodes:
        return
    if least == most:
        yield (
            f"rewards have no variance: {most:g} in all of {episodes} episodes",
            "filters, pairs and RL learn nothing from them; look at the episodes in the report",
        )
    elif successes == 0:
        yield (
            f"0 of {episodes} episodes succeed, best reward {most:g}",
            "look at the episodes in the report",
        )


def _rows(stage: StageFacts) -> Found:
    facts = stage.facts
    dropped, masked = _count(facts, "dropped"), _count(facts, "masked")
    rows = _count(facts, "rows") + dropped
    long = dropped - masked
    if rows and long > DROPPED_SHARE * rows:
        yield (
            f"{_share(long, rows, 'rows')} are dropped: they are longer than max_length",
            "raise max_length, or lower max_turns",
        )
    if masked:
        yield (
            f"{_share(masked, rows, 'rows')} are fully masked: none of their tokens is trained",
            "look at loss_on and max_length",
        )
    truncated = _count(facts, "truncated")
    if rows and truncated > DROPPED_SHARE * rows:
        yield (
            f"{_share(truncated, rows, 'rows')} are truncated to max_length",
            "raise max_length",
        )


def _candidates(stage: StageFacts) -> Found:
    ranked = _count(stage.facts, "ranked")
    if ranked and _count(stage.facts, "flat") == ranked:
        yield (
            f"the critic scores all candidates alike in all of {ranked} turns",
            "look at the critic's training",
        )


def is_unmoved(difference: Mapping[str, Any]) -> bool:
    """Whether a paired difference, as comparisons and verdicts write it, is of tasks none of which
    is better or worse."""
    return difference.get("better") == difference.get("worse") == 0


def verdict_words(verdict: str, observed: Mapping[str, Any]) -> str:
    """A verdict as tables show it. Where nothing moved, one that agrees is no finding."""
    if verdict in ("reproduced", "supported", "inconclusive") and is_unmoved(observed):
        return f"{verdict}, nothing moved"
    return verdict


def _comparison(stage: StageFacts) -> Found:
    for name in stage.facts.get("unmoved") or ():
        yield (
            "nothing moved: {} has 0 tasks better and 0 worse than {}".format(
                name, stage.facts.get("baseline", "the baseline")
            ),
            "inconclusive is no verdict on it; look at the stages that trained it",
        )


RULES: tuple[Rule, ...] = (
    _unchanged,
    _unchanged_model,
    _filter,
    _pairs,
    _loss,
    _gradients,
    _ends,
    _rewards,
    _comparison,
    _rows,
    _candidates,
)
"""The gravest first."""


def _count(facts: Mapping[str, Any], name: str) -> int:
    value = facts.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _share(count: int, total: int, noun: str) -> str:
    return f"{count} of {total} {noun} ({100.0 * count / total:.0f}%)"


def _steps(stage: StageFacts) -> str:
    steps = _count(stage.facts, "steps")
    return "1 step" if steps == 1 else f"{steps} steps"

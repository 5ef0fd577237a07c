"""What the store has measured of finished jobs, in the place of what was forecast of them.
Neighbours: `workload.py`, which forecasts; `observe.py`, which learns from the difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agentc.cost.amounts import Rows, Workload, candidates_of
from agentc.cost.parameters import ModelShape, shape_of_count
from agentc.cost.quantity import Quantity
from agentc.cost.subject import JobProfile
from agentc.kinds.groups import SERVED, TRAINERS

_REPLIES = "(replies)"
"""Stands for the fact by which a kind counts its replies."""
_RATIOS = {
    "turns": ("turns", "episodes"),
    "expert_turns": ("turns", "episodes"),
    "reply": ("completion_tokens", _REPLIES),
    "context": ("prompt_tokens", _REPLIES),
    "row_tokens": ("tokens", "rows"),
    "kept_draws": ("pairs", "drawn"),
    "scored": ("scored_tokens", _REPLIES),
    "tree_replies": ("samples", "trees"),
    "tree_leaves": ("leaves", "trees"),
    "revised": ("rows", "trees"),
    "judged": ("judgements", "trees"),
    "judge_reply": ("judge_completion_tokens", "judgements"),
    "judge_context": ("judge_prompt_tokens", "judgements"),
}
"""Which facts of a manifest, one over the other, tell what became of a guess."""


def fact_behind(name: str, subject: JobProfile) -> float | None:
    """What became of a guess, by the facts of a finished job; None for a job to come, or where it
    was not measured."""
    if name not in _RATIOS:
        return None
    facts = subject.measured.get("facts") or {}
    over, under = _RATIOS[name]
    above = facts.get(over)
    below = facts.get(subject.counts.replies if under == _REPLIES else under)
    if not isinstance(above, (int, float)) or not isinstance(below, (int, float)):
        return None
    if name in ("reply", "context") and subject.counts.replies == "turns":
        below *= candidates_of(subject)
    return above / below if above > 0 and below > 0 else None


def measured(subject: JobProfile, forecast: Workload) -> Workload:
    """A forecast with everything replaced that the job's manifest measured."""
    facts = subject.measured.get("facts") or {}

    def fact(name: str) -> float | None:
        found = facts.get(name)
        return float(found) if isinstance(found, (int, float)) and found >= 0 else None

    work, output = forecast, forecast.output
    count, turns = fact("parameters") or _by_bytes(output, facts), fact(subject.counts.replies)
    if count and isinstance(output, ModelShape):
        usual = shape_of_count(Quantity(count))
        known = output if output.parameters.spread < 0.1 else usual
        output = replace(known, parameters=Quantity(count), trained=output.trained, known=True)
        work = replace(work, model=output)
    made = fact(subject.counts.made)
    if made and isinstance(output, Rows):
        output = replace(output, count=Quantity(made))
    episodes = fact("episodes") or fact("pairs")
    if episodes and isinstance(output, Rows) and subject.counts.made == "episodes":
        output = replace(output, count=Quantity(episodes))
        if turns and fact("episodes"):
            output = replace(output, turns=Quantity(turns / episodes))
    if fact("episodes"):
        work = replace(work, rows=Quantity(episodes or 0.0))
    if turns:
        work = replace(work, turns=Quantity(turns))
        of = subject.counts.tokens
        replied, read = fact(f"{of}completion_tokens"), fact(f"{of}prompt_tokens")
        if replied is not None and read is not None:
            work = replace(
                work,
                replied=Quantity(replied),
                context=Quantity(read / (turns * candidates_of(subject))),
                tokens=Quantity(replied + read + (fact("scored_tokens") or 0.0)),
            )
    rows, tokens, steps = fact("rows"), fact("tokens"), fact("steps")
    if rows and tokens and subject.setting("lr") is not None:
        batch = subject.number("global_batch", 32)
        most = isinstance(subject.setting("max_steps"), int)
        passed = (steps or 0) * batch if most else rows * subject.number("epochs", 1)
        work = replace(
            work,
            rows=Quantity(rows),
            context=Quantity(tokens / rows),
            tokens=Quantity(passed * tokens / rows),
            steps=Quantity(steps or max(1.0, passed / batch)),
        )
    return replace(work, output=output)


def _by_bytes(output: object, facts: Mapping[str, Any]) -> float | None:
    """The weights of a model by the bytes of their files, in 16 bits, where its size was not known
    otherwise."""
    size = facts.get("weight_bytes")
    unknown = isinstance(output, ModelShape) and not output.known
    return size / 2 if unknown and isinstance(size, (int, float)) and size > 0 else None


def tokens_of(subject: JobProfile) -> float | None:
    """Tokens that a finished job moved through a model, or None where that was not measured."""
    if subject.kind not in (*TRAINERS, *SERVED):
        return None
    work = measured(subject, Workload())
    return work.tokens.median or None

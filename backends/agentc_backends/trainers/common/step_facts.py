"""Facts of a training's logged steps: what `agentc.runtime.health` judges the loss and the
gradients by."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from agentc.program.job import JobConfig


def step_facts(log: Path, max_grad_norm: float | None) -> dict[str, Any]:
    """`losses` and `gradients` of logs/steps.jsonl; what is not logged is left out."""
    lines = _lines(log)
    facts: dict[str, Any] = {}
    losses = _numbers(lines, "loss")
    if losses:
        facts["losses"] = _losses(losses)
    norms = [norm for norm in _numbers(lines, "grad_norm") if math.isfinite(norm)]
    if norms:
        facts["gradients"] = _gradients(norms, max_grad_norm or math.inf)
    return facts


def curve_facts(curve: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The same of a run of RL, whose curve has the means of each iteration: of the actor, or of a
    critic that learns alone. Whether gradients were clipped is not known of means."""
    facts: dict[str, Any] = {}
    for phase in ("actor", "critic"):
        rows = [row[phase] for row in curve if isinstance(row.get(phase), Mapping)]
        losses = _numbers(rows, "loss")
        norms = _numbers(rows, "grad_norm")
        if losses:
            facts["losses"] = {**_losses(losses), "per": "iterations"}
        if norms:
            broken = sum(not math.isfinite(norm) for norm in norms)
            finite = [norm for norm in norms if math.isfinite(norm)]
            known = _gradients(finite, math.inf) if finite else {"steps": 0}
            facts["gradients"] = {**known, "not_finite": broken, "per": "iterations"}
        if rows:
            break
    return facts


def _losses(losses: Sequence[float]) -> dict[str, Any]:
    finite = [loss for loss in losses if math.isfinite(loss)]
    last = [loss for loss in losses[-max(1, len(losses) // 4) :] if math.isfinite(loss)]
    return {
        "steps": len(losses),
        "not_finite": len(losses) - len(finite),
        "least": min(finite, default=None),
        "most": max(finite, default=None),
        "last": fmean(last) if last else None,
    }


def _gradients(norms: Sequence[float], limit: float) -> dict[str, Any]:
    return {
        "steps": len(norms),
        "least": min(norms),
        "most": max(norms),
        "clipped": sum(norm > limit for norm in norms),
    }


def max_grad_norm(config: JobConfig) -> float | None:
    """The clipping norm of a training job, by the name that its library has for it."""
    arguments = config.get("arguments") or {}
    for value in (arguments.get("max_grad_norm"), config.get("max_norm")):
        if value is not None:
            return float(value)
    flags: Sequence[str] = config.get("flags") or ()
    if "--max_norm" in flags:
        return float(flags[flags.index("--max_norm") + 1])
    return None


def _lines(log: Path) -> list[dict[str, Any]]:
    if not log.exists():
        return []
    found = []
    for text in log.read_text(encoding="utf-8").splitlines():
        try:
            found.append(json.loads(text))
        except ValueError:
            continue
    return found


def _numbers(lines: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    values = [line.get(name) for line in lines]
    return [float(value) for value in values if isinstance(value, int | float)]

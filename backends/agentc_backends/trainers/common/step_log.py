"""The log of a training's steps, logs/steps.jsonl, and the facts of it by which
`agentc.runtime.health` judges the loss and the gradients.

Each trainer decides when a line is due and which numbers it has.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from agentc.program.artifact_files import STEP_LOG_FILE
from agentc.program.job import Job, JobConfig, write_rows
from agentc_backends.trainers.common.processes import first_process


class StepLog:
    """Only the first process writes. An attempt that resumes after step `done` drops the lines of
    later steps, which it repeats."""

    def __init__(self, job: Job, done: int) -> None:
        self._job = job
        self._path = job.logs / STEP_LOG_FILE
        self._time = 0.0
        # At this attempt's last line; before its first line there is no time to divide by.
        self._tokens: float | None = None
        if first_process():
            keep_steps(self._path, done)

    def write(
        self, step: int, steps: int, *, lr: float, tokens: float, numbers: Mapping[str, Any]
    ) -> None:
        """Add the line of a step: its learning rate, the tokens since the run's first step, and its
        numbers, the `loss` among them. The job's progress shows them too."""
        if not first_process():
            return
        now = time.monotonic()
        speed = None
        if self._tokens is not None:
            speed = (tokens - self._tokens) / max(now - self._time, 1e-9)
        self._time, self._tokens = now, tokens
        line = {**numbers, "step": step, "lr": lr, "tokens_per_s": speed}
        line["num_tokens"] = float(tokens)
        with self._path.open("a", encoding="utf-8") as log:
            log.write(json.dumps(line, sort_keys=True) + "\n")
        progress: dict[str, Any] = {"loss": numbers["loss"], "tokens_per_s": speed}
        if "rewards/margins" in numbers:
            progress["margin"] = numbers["rewards/margins"]
        self._job.progress(step, steps, "steps", **progress)


def keep_steps(log: Path, last: int) -> None:
    """Drop the lines of steps after `last`."""
    if not log.exists():
        return
    kept = []
    for text in log.read_text(encoding="utf-8").splitlines():
        try:
            line = json.loads(text)
        except ValueError:
            continue  # not written to its end when the job was interrupted
        if line["step"] <= last:
            kept.append(line)
    shortened = log.with_suffix(".tmp")
    write_rows(shortened, kept)
    shortened.replace(log)


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
    """The same of an RL run, whose curve has means over each iteration: of the actor, or of the
    critic if only that learns. Of means it is not known whether gradients were clipped."""
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
            numbers = _gradients(finite, math.inf) if finite else {"steps": 0}
            facts["gradients"] = {**numbers, "not_finite": broken, "per": "iterations"}
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
    """The clipping norm of a training job, by its library's name for it."""
    arguments, settings = config.get("arguments") or {}, config.get("settings") or {}
    for value in (arguments.get("max_grad_norm"), settings.get("max_norm")):
        if value is not None:
            return float(value)
    flags: Sequence[str] = config.get("flags") or ()
    if "--max_norm" in flags:
        return float(flags[flags.index("--max_norm") + 1])
    return None


def _lines(log: Path) -> list[dict[str, Any]]:
    if not log.exists():
        return []
    lines = []
    for text in log.read_text(encoding="utf-8").splitlines():
        try:
            lines.append(json.loads(text))
        except ValueError:
            continue
    return lines


def _numbers(lines: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    values = [line.get(name) for line in lines]
    return [float(value) for value in values if isinstance(value, int | float)]

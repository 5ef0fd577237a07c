"""logs/steps.jsonl, a line for each step that is logged, and the job's progress line with it.

Each trainer's `reporting.py` says when a line is due and what stands in it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentc.program.job import Job, write_rows
from agentc_backends.trainers.common.processes import first_process


class StepLog:
    """The first process writes; on the others nothing happens. An attempt that begins after step
    `done` drops the lines of later steps, which it is about to repeat."""

    def __init__(self, job: Job, done: int) -> None:
        self._job = job
        self._path = job.logs / "steps.jsonl"
        self._time = 0.0
        # As of this attempt's last line; before its first, how long the tokens took is not known.
        self._tokens: float | None = None
        if first_process():
            keep_steps(self._path, done)

    def write(
        self, step: int, steps: int, *, lr: float, tokens: float, numbers: Mapping[str, Any]
    ) -> None:
        """Add the line of a step: its learning rate, the tokens trained from the run's first step
        on, and numbers with the `loss` among them."""
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
        shown: dict[str, Any] = {"loss": numbers["loss"], "tokens_per_s": speed}
        if "rewards/margins" in numbers:
            shown["margin"] = numbers["rewards/margins"]
        self._job.progress(step, steps, "steps", **shown)


def keep_steps(log: Path, last: int) -> None:
    """Drop the lines of steps after `last`."""
    if not log.exists():
        return
    kept = []
    for text in log.read_text(encoding="utf-8").splitlines():
        try:
            line = json.loads(text)
        except ValueError:
            continue  # it was being written when the job was cut off
        if line["step"] <= last:
            kept.append(line)
    whole = log.with_suffix(".tmp")
    write_rows(whole, kept)
    whole.replace(log)

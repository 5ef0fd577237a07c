"""Hands a model on as it is, where a stage had nothing to train on and its spec allows that."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from agentc.program.job import Job
from agentc_backends.data.models.checkpoint import WEIGHT_SUFFIXES, companion_files
from agentc_backends.data.models.scored_rows import SCORED_FILE

_OWN = ("config.json", "generation_config.json", SCORED_FILE)
"""Files beside its weights that are of this model alone."""


def keep_model(job: Job, because: str) -> None:
    """Fill `job.out` with the model that training would have started from, and say so in the facts.
    No count of tokens is among them: none was trained."""
    base = job.input("model")
    weights = [path for path in sorted(base.iterdir()) if path.name.endswith(WEIGHT_SUFFIXES)]
    own = [base / name for name in _OWN if (base / name).exists()]
    for path in (*own, *companion_files(base), *weights):
        _take(path, job.out / path.name)
    job.facts(kept_model=True, kept_because=because, steps=0)
    job.progress(0, 0, "steps", force=True)
    print("the model is handed on as it was: `on_empty: keep_model`")


def _take(source: Path, target: Path) -> None:
    """A second name of the same file where the disk allows it: what is published never changes."""
    real = source.resolve()
    try:
        os.link(real, target)
    except OSError:
        shutil.copyfile(real, target)

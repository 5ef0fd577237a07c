"""Job of encoder.hf: downloads a pinned revision from the Hugging Face hub and takes it.

Neighbours: `../job_hf.py`, whose download it is; `../text_encoders/job_hf.py`, which is alike.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from agentc.program.job import Job, load_job
from agentc_backends.data.models.checkpoint import CheckpointError, settle_libraries
from agentc_backends.data.models.job_hf import download
from agentc_backends.data.models.model_files import copy_encoder


def main() -> int:
    return run_download("encoder.hf", copy_encoder)


def run_download(name: str, take: Callable[[Path, Job, str], None]) -> int:
    """The job of that backend: `take` fills `job.out` from the downloaded directory, and may raise
    CheckpointError."""
    job = load_job()
    # Beside model.hf and dataset.hf the one job that may use the network.
    os.environ.setdefault("HF_HUB_OFFLINE", "0")
    settle_libraries()
    repo: str = job.config["repo"]
    revision: str = job.config["revision"]
    job.config.assert_all_read()
    try:
        take(download(repo, revision), job, repo)
    except CheckpointError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    job.facts(repo=repo, revision=revision)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""Job of encoder.hf: downloads a pinned revision from the Hugging Face hub and takes it.

Neighbour: `../job_hf.py`, whose download it is.
"""

from __future__ import annotations

import os
import sys

from agentc.runtime.program import Job, load_job
from agentc_backends.data.models.checkpoint import CheckpointError, settle_libraries
from agentc_backends.data.models.encoders.take import take_encoder
from agentc_backends.data.models.job_hf import download


def main() -> int:
    job = load_job()
    # Beside model.hf and dataset.hf the one job that may use the network.
    os.environ.setdefault("HF_HUB_OFFLINE", "0")
    settle_libraries()
    try:
        take(job)
    except CheckpointError as error:
        print(f"encoder.hf: {error}", file=sys.stderr)
        return 1
    return 0


def take(job: Job) -> None:
    """Write the encoder into `job.out`. Raises CheckpointError."""
    repo: str = job.config["repo"]
    revision: str = job.config["revision"]
    job.config.assert_all_read()
    take_encoder(download(repo, revision), job)
    job.facts(repo=repo, revision=revision)


if __name__ == "__main__":
    raise SystemExit(main())

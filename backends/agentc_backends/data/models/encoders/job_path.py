"""Job of encoder.path: takes an encoder's directory of this machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from agentc.runtime.program import Job, load_job
from agentc.runtime.store.content import content_digest
from agentc_backends.data.models.checkpoint import CheckpointError
from agentc_backends.data.models.encoders.take import take_encoder
from agentc_backends.data.models.job_path import SPEC_DIRECTORY


def main() -> int:
    job = load_job()
    try:
        take(job)
    except CheckpointError as error:
        print(f"encoder.path: {error}", file=sys.stderr)
        return 1
    return 0


def take(job: Job) -> None:
    """Write the encoder into `job.out`. Raises CheckpointError."""
    written: str = job.config["path"]
    planned: str = job.config["digest"]
    job.config.assert_all_read()
    source = Path(os.environ.get(SPEC_DIRECTORY, ".")) / Path(written).expanduser()
    if not source.is_dir():
        raise CheckpointError(f"{source} is not a directory; path is relative to the spec")
    take_encoder(source, job)
    # After the copy: a change before or during it must not end up under the planned key.
    if content_digest(source) != planned:
        raise CheckpointError(f"{source} has changed since the run was planned; run it again")


if __name__ == "__main__":
    raise SystemExit(main())

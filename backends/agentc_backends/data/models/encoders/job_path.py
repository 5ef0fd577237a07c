"""Job of encoder.path: takes an encoder's directory of this machine. Neighbour:
`../text_encoders/job_path.py`, which is alike."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from agentc.program.job import Job, load_job
from agentc.runtime.store.digests import content_digest
from agentc_backends.data.models.checkpoint import CheckpointError
from agentc_backends.data.models.job_path import SPEC_DIRECTORY
from agentc_backends.data.models.model_files import copy_encoder


def main() -> int:
    return run_copy("encoder.path", copy_encoder)


def run_copy(name: str, take: Callable[[Path, Job, str], None]) -> int:
    """The job of that backend: `take` fills `job.out` from the directory, and may raise
    CheckpointError."""
    job = load_job()
    written: str = job.config["path"]
    planned: str = job.config["digest"]
    job.config.assert_all_read()
    try:
        source = Path(os.environ.get(SPEC_DIRECTORY, ".")) / Path(written).expanduser()
        take(source, job, written)
        # After the copy: a change before or during it must not end up under the planned key.
        if content_digest(source) != planned:
            raise CheckpointError(f"{source} has changed since the run was planned; run it again")
    except CheckpointError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""Job of model.path: adopts a model directory of this machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from agentc.program.job import Job, load_job
from agentc.runtime.store.digests import content_digest
from agentc_backends.data.chat.formats import FormatError
from agentc_backends.data.models.checkpoint import CheckpointError, settle_libraries
from agentc_backends.data.models.model_files import copy_model

SPEC_DIRECTORY = "AGENTC_SPEC_DIR"
"""Environment variable: the directory of the spec, from which a relative path starts."""


def main() -> int:
    job = load_job()
    settle_libraries()
    try:
        take(job)
    except (FormatError, CheckpointError) as error:
        print(f"model.path: {error}", file=sys.stderr)
        return 1
    return 0


def take(job: Job) -> None:
    """Write the checkpoint into `job.out`. Raises CheckpointError, FormatError."""
    written: str = job.config["path"]
    planned: str = job.config["digest"]
    chat_format: str = job.config["chat_format"]
    job.config.assert_all_read()
    source = Path(os.environ.get(SPEC_DIRECTORY, ".")) / Path(written).expanduser()
    copy_model(source, job, chat_format, shown=written, link=False)
    # After the copy: a change before or during it must not end up under the planned key.
    if content_digest(source) != planned:
        raise CheckpointError(f"{source} has changed since the run was planned; run it again")


if __name__ == "__main__":
    raise SystemExit(main())

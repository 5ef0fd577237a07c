"""Job of model.path, encoder.path and text_encoder.path: copies a directory of this machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from agentc.program.job import Job, load_job
from agentc.runtime.store.digests import content_digest
from agentc_backends.data.chat.formats import FormatError
from agentc_backends.data.models.checkpoint import CheckpointError, configure_libraries
from agentc_backends.data.models.model_files import copy_of_kind

SPEC_DIRECTORY = "AGENTC_SPEC_DIR"
"""Environment variable: the directory of the spec, from which a relative path starts."""


def main() -> int:
    job = load_job()
    configure_libraries()
    try:
        import_model(job)
    except (FormatError, CheckpointError) as error:
        print(f"{job.spec['kind']}.path: {error}", file=sys.stderr)
        return 1
    return 0


def import_model(job: Job) -> None:
    """Write the model or encoder into `job.out`. Raises CheckpointError, FormatError."""
    written: str = job.config["path"]
    planned: str = job.config["digest"]
    copy = copy_of_kind(job, link=False)
    job.config.assert_all_read()
    source = Path(os.environ.get(SPEC_DIRECTORY, ".")) / Path(written).expanduser()
    copy(source, written)
    # After the copy: a change before or during it must not end up under the planned key.
    if content_digest(source) != planned:
        raise CheckpointError(f"{source} has changed since the run was planned; run it again")


if __name__ == "__main__":
    raise SystemExit(main())

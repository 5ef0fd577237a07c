"""Job of dataset.path: conversations from a file of this machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from agentc.kinds.models import RecordReading
from agentc.program.artifact_files import PAIRS_FILE, ROWS_FILE
from agentc.program.job import Job, load_job, write_rows
from agentc.runtime.store.digests import content_digest
from agentc_backends.data.datasets.conversations import rows_of
from agentc_backends.data.datasets.records import DatasetError, read_records

SPEC_DIRECTORY = "AGENTC_SPEC_DIR"
"""Environment variable: the directory of the spec, from which a relative path starts."""


def main() -> int:
    """Exit 0 with rows.jsonl written; 1 with a message when the file cannot be used."""
    job = load_job()
    try:
        import_dataset(job)
    except DatasetError as error:
        print(f"dataset.path: {error}", file=sys.stderr)
        return 1
    return 0


def import_dataset(job: Job) -> None:
    """Write the rows into `job.out`. Raises DatasetError."""
    written: str = job.config["path"]
    planned: str = job.config["digest"]
    rules = job.config.read_as(RecordReading)
    job.config.assert_all_read()
    source = Path(os.environ.get(SPEC_DIRECTORY, ".")) / Path(written).expanduser()
    if not source.is_file():
        raise DatasetError(f"{source} is not a file; path is relative to the spec")
    write_conversations(source, source.name, rules, job)
    # After reading: a change before or during it must not end up under the planned key.
    if content_digest(source) != planned:
        raise DatasetError(f"{source} has changed since the run was planned; run it again")


def write_conversations(source: Path, file: str, rules: RecordReading, job: Job) -> None:
    """Write rows.jsonl, or pairs.jsonl of preferences, and the facts. Raises DatasetError."""
    rows, counts = rows_of(read_records(source), file, rules)
    name = PAIRS_FILE if rules.format == "preference" else ROWS_FILE
    write_rows(job.out / name, rows)
    facts = counts.facts(rows)
    job.facts(**facts)
    for warning in counts.warnings():
        job.warn(warning)
    print(", ".join(f"{key} {value}" for key, value in facts.items()))
    job.progress(len(rows), len(rows), "rows", force=True)


if __name__ == "__main__":
    raise SystemExit(main())

"""What both jobs end with: the rows of a file in the artifact."""

from __future__ import annotations

from pathlib import Path

from agentc.runtime.program import Job, write_rows
from agentc_backends.data.datasets.conversations import ReadRules, rows_of
from agentc_backends.data.datasets.records import read_records


def write_conversations(source: Path, name: str, rules: ReadRules, job: Job) -> None:
    """Write rows.jsonl and the facts. Raises DatasetError."""
    rows, counts = rows_of(read_records(source), name, rules)
    write_rows(job.out / "rows.jsonl", rows)
    facts = counts.facts(rows)
    job.facts(**facts)
    print(", ".join(f"{key} {value}" for key, value in facts.items()))
    job.progress(len(rows), len(rows), "rows", force=True)

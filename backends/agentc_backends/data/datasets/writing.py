"""What both jobs end with: the rows of a file in the artifact."""

from __future__ import annotations

from pathlib import Path

from agentc.program.job import Job, write_rows
from agentc_backends.data.datasets.conversations import ReadRules, rows_of
from agentc_backends.data.datasets.records import read_records


def write_conversations(source: Path, file: str, rules: ReadRules, job: Job) -> None:
    """Write rows.jsonl, or pairs.jsonl of preferences, and the facts. Raises DatasetError."""
    rows, counts = rows_of(read_records(source), file, rules)
    name = "pairs.jsonl" if rules.format == "preference" else "rows.jsonl"
    write_rows(job.out / name, rows)
    facts = counts.facts(rows)
    job.facts(**facts)
    for warning in counts.warnings():
        job.warn(warning)
    print(", ".join(f"{key} {value}" for key, value in facts.items()))
    job.progress(len(rows), len(rows), "rows", force=True)

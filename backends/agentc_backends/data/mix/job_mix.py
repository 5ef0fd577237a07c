"""Job: mix conversations. `python -m agentc_backends.data.mix.job_mix JOB.json`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from agentc.program.job import load_job, read_rows, write_rows
from agentc_backends.data.mix.share import MixError, ShareRules, mix


def main() -> int:
    """Exit 0 with rows.jsonl written; 1 with a message when the share cannot be had."""
    job = load_job()
    rules = job.config.read_as(ShareRules)
    job.config.assert_all_read()
    agent = [_rows(folder) for folder in job.inputs("agent")]
    general = [_rows(folder) for folder in job.inputs("general")]
    try:
        rows, facts = mix(agent, general, rules)
    except MixError as error:
        print(f"mix: {error}", file=sys.stderr)
        return 1
    job.facts(**facts)
    print("mix:", ", ".join(f"{name} {value}" for name, value in facts.items()))
    write_rows(job.out / "rows.jsonl", rows)
    job.progress(len(rows), len(rows), "rows", force=True)
    return 0


def _rows(folder: Path) -> list[dict[str, Any]]:
    return [
        row
        for name in ("trajectories.jsonl", "rows.jsonl")
        if (folder / name).exists()
        for row in read_rows(folder / name)
    ]


if __name__ == "__main__":
    sys.exit(main())

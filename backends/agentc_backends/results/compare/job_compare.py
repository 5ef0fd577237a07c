"""Job: compare evaluations. `python -m agentc_backends.results.compare.job_compare JOB.json`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from agentc.runtime.program import load_job, read_rows, write_json
from agentc_backends.results.compare.comparison import ComparisonError, compare
from agentc_backends.results.compare.revisions import compare_revisions
from agentc_backends.results.inference.revisions import revision_metrics


def main() -> int:
    """Exit 0 with comparison.json written; 1 with a message when tasks differ."""
    job = load_job()
    config = job.config
    confidence = config["confidence"]
    names, baseline_name = config["names"], config["baseline_name"]
    wins = config.get("wins", False)
    config.assert_all_read()
    rows = list(zip(names, map(_metrics, job.inputs("of")), strict=True))
    others = job.inputs("baseline")
    if baseline_name in names:
        baseline = rows[names.index(baseline_name)]
    else:
        baseline = (baseline_name, _metrics(others[0]))
        rows.insert(0, baseline)
    of_revisions = "length_range" in baseline[1]
    try:
        if of_revisions:
            comparison = compare_revisions(rows, baseline, confidence)
        else:
            comparison = compare(rows, baseline, confidence, wins=wins)
    except ComparisonError as error:
        print(f"compare: {error}", file=sys.stderr)
        return 1
    write_json(job.out / "comparison.json", comparison)
    job.facts(rows=len(rows), baseline=baseline_name)
    lead = comparison.get("scores", ["reward"])[0]
    for row in comparison["rows"]:
        mean = row[lead]["mean"]
        print(f"{row['name']}: {lead} {'of no task' if mean is None else format(mean, '.4f')}")
    for note in comparison["notes"]:
        print(note)
    return 0


def _metrics(folder: Path) -> dict[str, Any]:
    """Of an evaluation, or of the rows of a revision; the compiler lets no comparison mix them."""
    if (folder / "rows.jsonl").exists():
        return revision_metrics(read_rows(folder / "rows.jsonl"))
    metrics: dict[str, Any] = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    return metrics


if __name__ == "__main__":
    sys.exit(main())

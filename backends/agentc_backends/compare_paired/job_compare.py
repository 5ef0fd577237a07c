"""Job: compare evaluations. `python -m agentc_backends.compare_paired.job_compare JOB.json`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from agentc.runtime.program import load_job, write_json
from agentc_backends.compare_paired.comparison import ComparisonError, compare


def main() -> int:
    """Exit 0 with comparison.json written; 1 with a message when tasks differ."""
    job = load_job()
    config = job.config
    confidence = config["confidence"]
    names, baseline_name = config["names"], config["baseline_name"]
    config.assert_all_read()
    rows = list(zip(names, map(_metrics, job.inputs("of")), strict=True))
    others = job.inputs("baseline")
    if baseline_name in names:
        baseline = rows[names.index(baseline_name)]
    else:
        baseline = (baseline_name, _metrics(others[0]))
        rows.insert(0, baseline)
    try:
        comparison = compare(rows, baseline, confidence)
    except ComparisonError as error:
        print(f"compare: {error}", file=sys.stderr)
        return 1
    write_json(job.out / "comparison.json", comparison)
    job.facts(rows=len(rows), baseline=baseline_name)
    for row in comparison["rows"]:
        print(f"{row['name']}: reward {row['reward']['mean']:.4f}")
    for note in comparison["notes"]:
        print(note)
    return 0


def _metrics(folder: Path) -> dict[str, Any]:
    metrics: dict[str, Any] = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    return metrics


if __name__ == "__main__":
    sys.exit(main())

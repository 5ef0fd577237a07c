"""Job: compare evaluations. `python -m agentc_backends.results.compare.job_compare JOB.json`."""

from __future__ import annotations

import sys

from agentc.kinds.evaluation import CompareSettings
from agentc.program.artifact_files import COMPARISON_FILE
from agentc.program.job import load_job, write_json
from agentc.runtime.health import is_unmoved
from agentc_backends.results.compare.comparison import ComparisonError, compare, compare_revisions
from agentc_backends.statistics.measurements import read_metrics


def main() -> int:
    """Exit 0 with comparison.json written; 1 with a message when tasks differ."""
    job = load_job()
    config = job.config
    settings = config.read_as(CompareSettings)
    names, baseline_name = config["names"], config["baseline_name"]
    config.assert_all_read()
    rows = list(zip(names, map(read_metrics, job.inputs("of")), strict=True))
    others = job.inputs("baseline")
    if baseline_name in names:
        baseline = rows[names.index(baseline_name)]
    else:
        baseline = (baseline_name, read_metrics(others[0]))
        rows.insert(0, baseline)
    of_revisions = "length_range" in baseline[1]
    try:
        if of_revisions:
            comparison = compare_revisions(rows, baseline, settings.confidence)
        else:
            comparison = compare(rows, baseline, settings.confidence, wins=settings.wins)
    except ComparisonError as error:
        print(f"compare: {error}", file=sys.stderr)
        return 1
    write_json(job.out / COMPARISON_FILE, comparison)
    unmoved = [
        row["name"]
        for row in comparison["rows"]
        if (difference := row.get("difference")) and is_unmoved(difference)
    ]
    job.facts(rows=len(rows), baseline=baseline_name, **({"unmoved": unmoved} if unmoved else {}))
    lead = comparison.get("scores", ["reward"])[0]
    for row in comparison["rows"]:
        mean = row[lead]["mean"]
        print(f"{row['name']}: {lead} {'of no task' if mean is None else format(mean, '.4f')}")
    for note in comparison["notes"]:
        print(note)
    return 0


if __name__ == "__main__":
    sys.exit(main())

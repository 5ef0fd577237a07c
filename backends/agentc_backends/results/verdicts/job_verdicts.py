"""Job: test the claims. `python -m agentc_backends.results.verdicts.job_verdicts JOB.json`."""

from __future__ import annotations

import sys
from collections import Counter

from agentc.program.artifact_files import VERDICTS_FILE
from agentc.program.job import load_job, write_json
from agentc_backends.results.verdicts.claims import judge_all
from agentc_backends.results.verdicts.rules import VerdictRules
from agentc_backends.statistics.measurements import read_metrics


def main() -> int:
    """Exit 0 with claims.json written, whatever the verdicts are."""
    job = load_job()
    config = job.config
    claims, scale = config["claims"], config["scale"]
    rules = config.read_as(VerdictRules)
    stages = config["stages"]
    config.assert_all_read()
    folders = zip(stages, job.inputs("of"), strict=True)
    metrics = {stage: read_metrics(folder) for stage, folder in folders}
    judged = judge_all(claims, metrics, rules, scale)
    document = {
        "claims": judged,
        "confidence": rules.confidence,
        "power": rules.power,
        "scale": scale,
    }
    write_json(job.out / VERDICTS_FILE, document)
    counts = Counter(one["verdict"] for one in judged)
    job.facts(**{verdict.replace(" ", "_"): count for verdict, count in sorted(counts.items())})
    job.progress(len(judged), len(judged), "claims", force=True)
    for one in judged:
        print(f"{one['name']}: {one['verdict']} ({one['because']})")
    return 0


if __name__ == "__main__":
    sys.exit(main())

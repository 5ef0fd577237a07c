"""Job: judge the claims. `python -m agentc_backends.judge_claims.job_judge JOB.json`."""

from __future__ import annotations

import json
import sys
from collections import Counter

from agentc.runtime.program import load_job, write_json
from agentc_backends.judge_claims.rules import Rules
from agentc_backends.judge_claims.verdicts import judge_all


def main() -> int:
    """Exit 0 with claims.json written, whatever the verdicts are."""
    job = load_job()
    config = job.config
    claims, scale = config["claims"], config["scale"]
    rules = Rules(confidence=config["confidence"], power=config["power"])
    stages = config["stages"]
    config.assert_all_read()
    folders = zip(stages, job.inputs("of"), strict=True)
    metrics = {
        stage: json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
        for stage, folder in folders
    }
    judged = judge_all(claims, metrics, rules, scale)
    document = {
        "claims": judged,
        "confidence": rules.confidence,
        "power": rules.power,
        "scale": scale,
    }
    write_json(job.out / "claims.json", document)
    counts = Counter(one["verdict"] for one in judged)
    job.facts(**{verdict.replace(" ", "_"): count for verdict, count in sorted(counts.items())})
    job.progress(len(judged), len(judged), "claims", force=True)
    for one in judged:
        print(f"{one['name']}: {one['verdict']} ({one['because']})")
    return 0


if __name__ == "__main__":
    sys.exit(main())

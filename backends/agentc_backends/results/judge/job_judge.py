"""Job: judge the claims. `python -m agentc_backends.results.judge.job_judge JOB.json`."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from agentc.runtime.program import load_job, read_rows, write_json
from agentc_backends.results.inference.revisions import revision_metrics
from agentc_backends.results.judge.rules import VerdictRules
from agentc_backends.results.judge.verdicts import judge_all


def main() -> int:
    """Exit 0 with claims.json written, whatever the verdicts are."""
    job = load_job()
    config = job.config
    claims, scale = config["claims"], config["scale"]
    rules = VerdictRules(confidence=config["confidence"], power=config["power"])
    stages = config["stages"]
    config.assert_all_read()
    folders = zip(stages, job.inputs("of"), strict=True)
    metrics = {stage: _metrics(folder) for stage, folder in folders}
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


def _metrics(folder: Path) -> dict[str, Any]:
    """Of an evaluation, or of the rows of a revision."""
    if (folder / "rows.jsonl").exists():
        return revision_metrics(read_rows(folder / "rows.jsonl"))
    metrics: dict[str, Any] = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    return metrics


if __name__ == "__main__":
    sys.exit(main())

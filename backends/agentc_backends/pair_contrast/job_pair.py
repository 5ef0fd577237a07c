"""Job: build pairs. `python -m agentc_backends.pair_contrast.job_pair JOB.json`."""

from __future__ import annotations

import sys
from pathlib import Path

from agentc.runtime.program import Job, load_job, read_rows, write_rows
from agentc_backends.pair_contrast.contrast import build_pairs
from agentc_backends.pair_contrast.rules import PairError, PairRules


def main() -> int:
    """Exit 0 with pairs.jsonl written; 1 with a message when there is nothing to pair."""
    job = load_job()
    rules = _rules(job)
    job.config.assert_all_read()
    expert = [_rows(folder) for folder in job.inputs("expert")]
    explored = [_rows(folder) for folder in job.inputs("rollouts")]
    try:
        pairs, counts = build_pairs(expert, explored, rules)
    except PairError as error:
        print(f"pairs: {error}", file=sys.stderr)
        return 1
    facts = counts.facts(len(pairs))
    job.facts(**facts)
    print("pairs:", ", ".join(f"{name} {value}" for name, value in facts.items()))
    if not pairs:
        print(
            "pairs: not one pair came out; every explored trajectory tied or was left out. "
            "Explore at a higher temperature, over more tasks or attempts, or relax margin and "
            "directions. The counts stand above.",
            file=sys.stderr,
        )
        return 1
    write_rows(job.out / "pairs.jsonl", pairs)
    job.progress(len(pairs), len(pairs), "pairs", force=True)
    return 0


def _rows(folder: Path) -> list[dict[str, object]]:
    return read_rows(folder / "trajectories.jsonl")


def _rules(job: Job) -> PairRules:
    config = job.config
    return PairRules(
        margin=config["margin"],
        on_tie=config["on_tie"],
        on_null=config["on_null"],
        directions=config["directions"],
        max_extra_rounds=config["max_extra_rounds"],
        prompt_from=config["prompt_from"],
        sources=config["sources"],
        max_per_task=config["max_per_task"],
        seed=config["seed"],
    )


if __name__ == "__main__":
    sys.exit(main())

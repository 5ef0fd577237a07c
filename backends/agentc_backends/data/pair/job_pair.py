"""Job: build pairs. `python -m agentc_backends.data.pair.job_pair JOB.json`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from agentc.program.artifact_files import PAIRS_FILE, ROWS_FILE, TRAJECTORIES_FILE
from agentc.program.job import load_job, read_rows, write_rows
from agentc_backends.data.pair.contrast import build_pairs
from agentc_backends.data.pair.trajectories import PairError, PairRules

_TRAINED = ("prompt", "chosen", "rejected")


def main() -> int:
    """Exit 0 with pairs.jsonl written; 1 with a message when there is nothing to pair, unless an
    empty result is wanted."""
    job = load_job()
    rules = job.config.read_as(PairRules)
    job.config.assert_all_read()
    expert = [_rows(folder) for folder in job.inputs("expert")]
    explored = [_rows(folder) for folder in job.inputs("rollouts")]
    try:
        pairs, counts = build_pairs(expert, explored, rules)
    except PairError as error:
        print(f"pairs: {error}", file=sys.stderr)
        return 1
    facts = {**counts.facts(len(pairs)), "distinct": distinct_pairs(pairs)}
    job.facts(**facts)
    print("pairs:", ", ".join(f"{name} {value}" for name, value in facts.items()))
    if not pairs:
        print(
            "pairs: not one pair came out; every explored trajectory tied or was left out. "
            "Explore at a higher temperature, over more tasks or attempts, or relax margin and "
            "directions. The counts are above.",
            file=sys.stderr,
        )
        if counts.skipped["no_expert"] and not counts.compared:
            print(
                "pairs: no explored task has a trajectory of the expert, whose first is of "
                f"{_first_task(expert)}; the first explored one is of {_first_task(explored)}. Of "
                "a data set, `task_ids` says how its records name their tasks",
                file=sys.stderr,
            )
        if rules.on_empty == "error":
            return 1
    if counts.forgotten:
        job.warn(
            f"{counts.forgotten} of {len(pairs)} pairs have a side whose policy "
            "no longer saw all of its turns (`on_overflow: drop_oldest`); the pair holds the whole "
            "conversation, so that replies are trained behind a context that they were not made "
            "in. `on_overflow: end`, or a longer max_model_len of the server, would avoid that"
        )
    write_rows(job.out / PAIRS_FILE, pairs)
    job.progress(len(pairs), len(pairs), "pairs", force=True)
    return 0


def distinct_pairs(pairs: Sequence[Mapping[str, object]]) -> int:
    """Pairs that differ by what is trained."""
    return len({json.dumps([pair[name] for name in _TRAINED]) for pair in pairs})


def _first_task(inputs: Sequence[Sequence[Mapping[str, object]]]) -> str:
    return next((repr(row["task_id"]) for rows in inputs for row in rows), "none")


def _rows(folder: Path) -> list[dict[str, object]]:
    """Trajectories, or conversations of a data set."""
    names = [name for name in (TRAJECTORIES_FILE, ROWS_FILE) if (folder / name).exists()]
    return [row for name in names for row in read_rows(folder / name)]


if __name__ == "__main__":
    sys.exit(main())

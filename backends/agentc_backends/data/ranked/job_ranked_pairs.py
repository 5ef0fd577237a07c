"""Job: draw pairs by rank. `python -m agentc_backends.data.ranked.job_ranked_pairs JOB.json`."""

from __future__ import annotations

import sys

from agentc.program.artifact_files import PAIRS_FILE, TURNS_FILE
from agentc.program.job import each_row, load_job, write_rows
from agentc_backends.data.ranked.pairs import RankedRules, ranked_pairs

_MANY = 0.5
"""Share of draws that may be lost before the job warns."""


def main() -> int:
    """Exit 0 with pairs.jsonl written; 1 with a message when not one pair comes out, unless an
    empty result is wanted."""
    job = load_job()
    rules = job.config.read_as(RankedRules)
    on_empty = job.config.get("on_empty", "error")
    job.config.assert_all_read()
    # One at a time: their candidates' tokens are many times what is kept of them.
    turns = (row for folder in job.inputs("turns") for row in each_row(folder / TURNS_FILE))
    pairs, counts = ranked_pairs(turns, rules)
    facts = counts.facts(len(pairs))
    job.facts(**facts)
    print("pairs:", ", ".join(f"{name} {value}" for name, value in facts.items()))
    if not pairs:
        print(
            "pairs: not one pair came out: the candidates of every turn tie, or are the same text. "
            "Sample more of them, at a higher temperature. The counts stand above.",
            file=sys.stderr,
        )
        if on_empty == "error":
            return 1
    elif len(pairs) < _MANY * counts.drawn:
        job.warn(
            f"{counts.drawn - len(pairs)} of {counts.drawn} drawn pairs were left out "
            f"({', '.join(f'{name} {n}' for name, n in sorted(counts.dropped.items()) if n)}): the "
            "policy repeats itself; more candidates or a higher temperature would give other ones"
        )
    write_rows(job.out / PAIRS_FILE, pairs)
    job.progress(len(pairs), len(pairs), "pairs", force=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

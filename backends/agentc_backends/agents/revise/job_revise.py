"""Job: revise trajectories. `python -m agentc_backends.agents.revise.job_revise JOB.json`.

Leases: `policy` where the part `revision` is asked for, `environment` where splices are tried out.
Answers and trials lie in `work/`, so a rerun asks only for the rest. Exit 75 means infrastructure:
another run may succeed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from agentc.program.job import Job, JobConfig, read_rows, write_json, write_rows
from agentc_backends.agents.common.program import run_job
from agentc_backends.agents.common.prompt import OBSERVATION_PREFIX
from agentc_backends.agents.revise.collect import SPLICED, collect
from agentc_backends.agents.revise.counts import RevisionCounts, judge_facts
from agentc_backends.agents.revise.judge import Judge
from agentc_backends.agents.revise.rules import (
    Bars,
    JudgeRules,
    ReviseError,
    ReviseRules,
    SignalRules,
)
from agentc_backends.agents.revise.serving import connect
from agentc_backends.agents.revise.trees import RevisionTree, read_trees
from agentc_backends.statistics.measured import JUDGED_BY


async def revise(job: Job) -> None:
    """Make the rows of the job of its trees and write rows.jsonl."""
    rules, judge_rules = _rules(job.config), _judge_rules(job.config)
    decode = job.config["decode"]
    protocol = judge_protocol(job.config)
    job.config.assert_all_read()
    counts = RevisionCounts()
    trees, counts.trees_broken = read_trees(
        [read_rows(folder / "trees.jsonl") for folder in job.inputs("trees")]
    )
    counts.trees = len(trees)
    counts.leaves = sum(len(tree.leaves) for tree in trees)
    async with connect(job, rules, judge_rules, decode) as asking:
        rows = await collect(
            trees,
            rules,
            counts,
            asking.find_cuts,
            asking.try_out if asking.replayer is not None else None,
        )
        facts = counts.facts() | _asked(job, asking.judge)
    if protocol is not None:
        write_json(job.out / JUDGED_BY, protocol)
    job.facts(**facts)
    print("revise:", ", ".join(f"{name} {value}" for name, value in facts.items()))
    if not rows:
        raise ReviseError(_nothing(trees, rules, counts))
    write_rows(job.out / "rows.jsonl", rows)
    job.progress(len(rows), len(rows), "rows", force=True)


def judge_protocol(config: JobConfig) -> dict[str, Any] | None:
    """All that decides what an answer of the judge means besides the actor that is asked: what a
    comparison of revisions holds against another's. None where nothing is judged."""
    return None if config["judge"] is None else {"judge": {**config["judge"], **config["decode"]}}


def _asked(job: Job, judge: Judge | None) -> dict[str, Any]:
    """Writes the judge's answers beside the rows, and what they have cost."""
    if judge is None:
        return {}
    used = judge.used
    write_rows(job.out / "judgements.jsonl", [{**row, "end": "judged"} for row in used])
    return judge_facts(used, judge.wanted)


def _nothing(trees: Sequence[RevisionTree], rules: ReviseRules, counts: RevisionCounts) -> str:
    if not trees:
        return "there is no tree that was searched to its end"
    best = max((leaf.reward for tree in trees for leaf in tree.leaves), default=None)
    if best is None:
        return f"none of the {len(trees)} trees has a finished trajectory"
    message = f"not one row came out of {len(trees)} trees with {counts.leaves} trajectories"
    if rules.bars is not None and not rules.bars.is_good(best):
        return (
            f"{message}: the largest reward is {best:g}, and alpha is {rules.bars.alpha:g} "
            f"({rules.bars.alpha_is}). Lower alpha, or search with more iterations"
        )
    if any(part in rules.parts for part in SPLICED) and counts.pairs == 0:
        return f"{message}: rewards within a tree are never far enough apart for beta"
    return f"{message}; the counts above say what became of them"


def _rules(config: JobConfig) -> ReviseRules:
    bars, signal = config["bars"], config["signal"]
    if signal is not None:
        signal = SignalRules(**{**signal, "thoughts": tuple(signal["thoughts"])})
    return ReviseRules(
        parts=tuple(config["parts"]),
        bars=None if bars is None else Bars(**bars),
        signal=signal,
        best_reward=config["best_reward"],
        dedup_good=config["dedup_good"],
        dedup_revision=config["dedup_revision"],
        max_pairs_per_tree=config["max_pairs_per_tree"],
        max_revision=config["max_revision"],
        max_good=config["max_good"],
        drop_unverified=config["verify"] == "drop",
        seed=config["seed"],
        observation_prefix=config.get("observation_prefix", OBSERVATION_PREFIX),
    )


def _judge_rules(config: JobConfig) -> JudgeRules | None:
    judge = config["judge"]
    return None if judge is None else JudgeRules(**judge, seed=config["seed"])


if __name__ == "__main__":
    sys.exit(run_job("revise", revise))

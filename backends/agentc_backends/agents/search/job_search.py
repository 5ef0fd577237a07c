"""Job: search trees. `python -m agentc_backends.agents.search.job_search JOB.json`.

Leases: `policy` and `environment`. Finished trees lie in `work/trees.jsonl`, so a rerun after a
kill grows only the rest. Exit 75 means infrastructure: another run may succeed.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from agentc.kinds.search import SearchedTrees
from agentc.program.artifact_files import TREES_FILE
from agentc.program.job import Job, write_rows
from agentc_backends.agents.common.agreement import compare_with_trainer
from agentc_backends.agents.common.connect import Servers, connect
from agentc_backends.agents.common.episode import EpisodeRules, read_rules, split_tasks
from agentc_backends.agents.common.failures import FatalError
from agentc_backends.agents.common.journal import Journal
from agentc_backends.agents.common.prefixes import Divergences, job_prefixes, prefix_facts
from agentc_backends.agents.common.program import run_job
from agentc_backends.agents.common.runner import Row, WorkProgress, play_unfinished
from agentc_backends.agents.search.navigator import Copying
from agentc_backends.agents.search.settings import SearchRules
from agentc_backends.agents.search.tree import RequestBudget, TreeRoot, prefix_roots, task_roots
from agentc_backends.agents.search.tree_search import ReachRules, TreeSearch
from agentc_backends.clients.errors import InfrastructureError

_ON_OVERFLOW = (
    "`on_overflow: error` makes that a failure of the stage; `drop_oldest` forgets the oldest "
    "turns, `end` makes the node a leaf."
)


async def search(job: Job) -> None:
    """Grow the trees of the job and write trees.jsonl."""
    config = job.config
    rules, wanted = config.read_as(SearchRules), config.read_as(SearchedTrees)
    in_flight = job.placement["concurrency"] * rules.children
    async with connect(job.leases, config["decode"], in_flight) as servers:
        meta = await servers.world.meta()
        episode = read_rules(config, meta)
        how = _reach_rules(job, meta, rules)
        tasks = split_tasks(meta, episode.split, wanted.limit)
        roots = _roots(job, episode, wanted, tasks)
        config.assert_all_read()
        assert servers.policy is not None
        await compare_with_trainer(job, servers.policy)
        with Journal(job.work / "trees.jsonl", ("id",)) as journal:
            rows = await _grow_all(job, episode, rules, how, roots, journal, servers)
    write_rows(job.out / TREES_FILE, rows)


def _roots(
    job: Job, episode: EpisodeRules, wanted: SearchedTrees, tasks: Sequence[str]
) -> list[TreeRoot]:
    """A tree for each task, or for each prefix of the input. Raises FatalError where there is
    none."""
    if not job.inputs("prefixes"):
        return task_roots(tasks, wanted.seed, wanted.tie_seed, wanted.prompt_seed)
    prefixes = job_prefixes(
        job,
        episode.prompt.observation_prefix,
        tasks,
        wanted.prefix,
        wanted.seed,
        longest=wanted.depth,
    )
    counted = wanted.prefix.counted
    return prefix_roots(prefixes, wanted.seed, wanted.tie_seed, counted=counted)


def _reach_rules(job: Job, meta: Mapping[str, Any], rules: SearchRules) -> ReachRules:
    """How nodes are reached: as asked for, as far as the environment can. Raises FatalError."""
    placement = job.placement
    able = meta.get("capabilities") or ()
    copying: Copying = "replay"
    if placement["reach"] != "replay":
        copying = next((way for way in ("snapshot", "fork") if way in able), "replay")
    if placement["reach"] == "fork" and copying == "replay":
        raise FatalError("`reach: fork`, but the environment cannot copy states; set `replay`")
    sessions = placement["sessions_per_tree"] or (rules.children if copying != "replay" else 1)
    return ReachRules(
        copying=copying,
        sessions=sessions,
        same=placement["same_state"],
        verify_share=placement["verify_share"],
    )


async def _grow_all(
    job: Job,
    episode: EpisodeRules,
    rules: SearchRules,
    how: ReachRules,
    roots: Sequence[TreeRoot],
    journal: Journal,
    servers: Servers,
) -> list[Row]:
    """All rows of the stage, in order."""
    policy = servers.policy
    assert policy is not None

    divergences = Divergences(len(roots), job.placement["error_budget"])

    async def grow(root: TreeRoot) -> Row:
        row = await TreeSearch(episode, rules, root).run(policy, servers.world, how)
        return divergences.check(row)

    def broken(root: TreeRoot, error: InfrastructureError) -> Row:
        return TreeSearch(episode, rules, root).row("error", str(error))

    progress = WorkProgress(
        job=job, total=len(roots), noun="trees", speed="samples_per_s", digits=2
    )
    grown = await play_unfinished(
        roots,
        journal,
        progress,
        key=lambda root: (root.id,),
        play=grow,
        reward=_best,
        made=lambda row: row["budget"]["samples"],
        lost=servers.lost,
        broken=broken,
        name=lambda root: f"tree of {root.id}",
    )
    rows = [*grown]
    budget = Counter(dict.fromkeys(RequestBudget().row(), 0))
    for row in rows:
        budget.update(row["budget"])
    searched = [row for row in rows if row["end"] == "searched"]
    ends = Counter(leaf["end"] for row in searched for leaf in _leaves(row))
    job.facts(
        trees=len(rows),
        errors=len(rows) - len(searched),
        resumed=progress.resumed,
        reach=how.copying,
        nodes=sum(len(row["nodes"]) for row in searched),
        leaves=ends.total(),
        ends=dict(sorted(ends.items())),
        solved=sum(reward >= episode.success_at for reward in progress.rewards),
        reward_mean=progress.mean,
        **progress.per_second,
        **budget,
    )
    if any("origin" in row for row in rows):
        job.facts(**prefix_facts(rows, lambda row: len(row["prefix"])))
    return rows


def _best(row: Row) -> float | None:
    """The reward of a tree is that of its best leaf."""
    if row["end"] != "searched":
        return None
    return max(float(leaf["reward"]) for leaf in _leaves(row))


def _leaves(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Terminal nodes without children: the ends of attempts."""
    inner = {node["parent"] for node in row["nodes"]}
    return [node for node in row["nodes"] if node["terminal"] and node["id"] not in inner]


if __name__ == "__main__":
    sys.exit(run_job("search", search, on_overflow=_ON_OVERFLOW))

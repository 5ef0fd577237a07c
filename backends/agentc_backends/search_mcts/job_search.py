"""Job: search trees. `python -m agentc_backends.search_mcts.job_search JOB.json`.

Leases: `policy` and `environment`. Finished trees lie in `work/trees.jsonl`, so a rerun after a
kill grows only the rest. Exit 75 means infrastructure: another run may succeed.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from agentc.runtime.program import Job, JobConfig, load_job, write_rows
from agentc_backends.rollout_react.connect import Servers, connect
from agentc_backends.rollout_react.episode import (
    ContextOverflowError,
    EpisodeRules,
    FatalError,
    InfrastructureError,
)
from agentc_backends.rollout_react.journal import Journal
from agentc_backends.rollout_react.prompt import PromptError
from agentc_backends.rollout_react.runner import (
    ErrorBudgetError,
    Hooks,
    OutOfTimeError,
    ServerLostError,
    run_episodes,
)
from agentc_backends.rollout_react.tasks import read_rules, tasks_of
from agentc_backends.search_mcts.budget import Budget
from agentc_backends.search_mcts.grow import Growth, ReachRules, SearchRules
from agentc_backends.search_mcts.reach import Copying

INFRASTRUCTURE = 75


def main() -> int:
    """Exit 0 with trees.jsonl written, 75 when servers failed or the time limit is near, 1 when
    the job is wrong."""
    job = load_job()
    try:
        asyncio.run(_run(job))
    except (ServerLostError, ErrorBudgetError, InfrastructureError) as error:
        print(f"search: {error}", file=sys.stderr)
        return INFRASTRUCTURE
    except OutOfTimeError as stopped:
        print(f"search: {stopped}", file=sys.stderr)
        return job.out_of_time()
    except ContextOverflowError as error:
        print(
            f"search: {error}. `on_overflow: error` makes that a failure of the stage; "
            "`drop_oldest` forgets the oldest turns, `end` makes the node a leaf.",
            file=sys.stderr,
        )
        return 1
    except (FatalError, PromptError) as error:
        print(f"search: {error}", file=sys.stderr)
        return 1
    return 0


async def _run(job: Job) -> None:
    config = job.config
    rules = _search_rules(config)
    in_flight = job.placement["concurrency"] * rules.children
    async with connect(job.leases, config["decode"], in_flight) as servers:
        meta = await servers.world.meta()
        episode = read_rules(config, meta)
        how = _reach_rules(job, meta, rules)
        tasks = tasks_of(meta, episode.split, config["limit"])
        config.assert_all_read()
        with Journal(job.work / "trees.jsonl", ("task_id",)) as journal:
            rows = await _grow_rest(job, episode, rules, how, tasks, journal, servers)
    write_rows(job.out / "trees.jsonl", rows)


def _search_rules(config: JobConfig) -> SearchRules:
    return SearchRules(
        depth=config["depth"],
        iterations=config["iterations"],
        children=config["children"],
        c_uct=config["c_uct"],
        dedup=config["dedup"],
        on_overflow=config["on_overflow"],
        flatten_observations=config["flatten_observations"],
        seed=config["seed"],
        tie_seed=config["tie_seed"],
        prompt_seed=config["prompt_seed"],
        action_span=config["action_span"],
        action_space=config["action_space"],
        no_action=config["no_action"],
        turn_numbers=config["turn_numbers"],
        invalid_message=config["invalid_message"],
    )


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


async def _grow_rest(
    job: Job,
    episode: EpisodeRules,
    rules: SearchRules,
    how: ReachRules,
    tasks: Sequence[str],
    journal: Journal,
    servers: Servers,
) -> list[dict[str, Any]]:
    """All rows of the stage, in order; grows the trees that the journal does not hold."""
    policy = servers.policy
    assert policy is not None
    done = {task: row for (task,), row in journal.finished.items() if task in set(tasks)}
    tally = _Tally(job, len(tasks), list(done.values()))

    async def grow(task_id: str) -> dict[str, Any]:
        return await Growth(episode, rules, task_id).run(policy, servers.world, how)

    def finished(row: dict[str, Any]) -> None:
        journal.append(row)
        tally.add(row)

    def broken(task_id: str, error: InfrastructureError) -> dict[str, Any]:
        return Growth(episode, rules, task_id).row("error", str(error))

    tally.show()
    new = await run_episodes(
        [task for task in tasks if task not in done],
        Hooks(
            play=grow,
            lost=servers.lost,
            finished=finished,
            broken=broken,
            name=lambda task: f"tree of {task}",
            noun="trees",
        ),
        concurrency=job.placement["concurrency"],
        error_budget=job.placement["error_budget"],
        total=len(tasks),
        time_left=job.time_left(),
    )
    tally.facts(reach=how.copying, success_at=episode.success_at)
    done.update({row["task_id"]: row for row in new})
    return [done[task] for task in tasks]


class _Tally:
    """Counts for the progress line and the manifest, added up as trees arrive. The reward of a
    tree is that of its best leaf."""

    def __init__(self, job: Job, total: int, rows: Sequence[Mapping[str, Any]]) -> None:
        self._job = job
        self._total = total
        self._started = time.monotonic()
        self._trees = 0
        self._nodes = 0
        self._best: list[float] = []
        self._ends: Counter[str] = Counter()
        self._budget: Counter[str] = Counter(dict.fromkeys(Budget().row(), 0))
        for row in rows:
            self._count(row)
        self._resumed = self._trees
        self._old_samples = self._budget["samples"]

    def add(self, row: Mapping[str, Any]) -> None:
        self._count(row)
        self.show()

    def show(self) -> None:
        speed = self._samples_per_s()
        if self._best:
            mean = round(sum(self._best) / len(self._best), 4)
            self._job.progress(self._trees, self._total, "trees", samples_per_s=speed, reward=mean)
        else:
            self._job.progress(self._trees, self._total, "trees", samples_per_s=speed)

    def facts(self, *, reach: str, success_at: float) -> None:
        best = self._best
        self._job.facts(
            trees=self._trees,
            errors=self._trees - len(best),
            resumed=self._resumed,
            reach=reach,
            nodes=self._nodes,
            leaves=sum(self._ends.values()),
            ends=dict(sorted(self._ends.items())),
            solved=sum(reward >= success_at for reward in best),
            reward_mean=sum(best) / len(best) if best else None,
            samples_per_s=self._samples_per_s(),
            **self._budget,
        )

    def _count(self, row: Mapping[str, Any]) -> None:
        self._trees += 1
        self._budget.update(row["budget"])
        if row["end"] != "searched":
            return
        leaves = _leaves(row)
        self._nodes += len(row["nodes"])
        self._ends.update(leaf["end"] for leaf in leaves)
        self._best.append(max(leaf["reward"] for leaf in leaves))

    def _samples_per_s(self) -> float:
        new = self._budget["samples"] - self._old_samples
        return round(new / max(time.monotonic() - self._started, 1e-3), 2)


def _leaves(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Terminal nodes without children: the ends of attempts."""
    inner = {node["parent"] for node in row["nodes"]}
    return [node for node in row["nodes"] if node["terminal"] and node["id"] not in inner]


if __name__ == "__main__":
    sys.exit(main())

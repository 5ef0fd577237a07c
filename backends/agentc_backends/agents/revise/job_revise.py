"""Job: revise trajectories. `python -m agentc_backends.agents.revise.job_revise JOB.json`.

Leases: `policy` where the part `revision` is asked for, `environment` where splices are tried out.
Answers and trials lie in `work/`, so a rerun requests only the rest. Exit 75 means infrastructure:
another run may succeed.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any, TypeVar

from agentc.program.artifact_files import ROWS_FILE, TREES_FILE
from agentc.program.job import Job, JobConfig, read_rows, write_json, write_rows
from agentc_backends.agents.common.connect import AgentGymWorld, ChatPolicy, lost_server
from agentc_backends.agents.common.failures import ErrorBudgetError
from agentc_backends.agents.common.journal import Journal
from agentc_backends.agents.common.program import run_job
from agentc_backends.agents.common.runner import run_concurrently
from agentc_backends.agents.revise.collect import SPLICED, RevisionCounts, collect, judge_facts
from agentc_backends.agents.revise.judge import Cut, Judge
from agentc_backends.agents.revise.pairs import Pair, RevisionTree, read_trees
from agentc_backends.agents.revise.rules import ReviseError, ReviseRules
from agentc_backends.agents.revise.splice import Replayer, Trial, shared_length
from agentc_backends.clients.errors import InfrastructureError
from agentc_backends.clients.leases import chat_client, environment_client
from agentc_backends.statistics.measurements import JUDGED_BY


async def revise(job: Job) -> None:
    """Make the rows of the job of its trees and write rows.jsonl."""
    rules = job.config.read_as(ReviseRules)
    decode = job.config["decode"]
    protocol = judge_protocol(job.config)
    job.config.assert_all_read()
    counts = RevisionCounts()
    trees, counts.trees_broken = read_trees(
        [read_rows(folder / TREES_FILE) for folder in job.inputs("trees")]
    )
    counts.trees = len(trees)
    counts.leaves = sum(len(tree.leaves) for tree in trees)
    async with connect(job, rules, decode) as asking:
        rows = await collect(
            trees,
            rules,
            counts,
            asking.find_cuts,
            asking.try_out if asking.replayer is not None else None,
        )
        facts = counts.facts() | _write_judgements(job, asking.judge)
    if protocol is not None:
        write_json(job.out / JUDGED_BY, protocol)
    job.facts(**facts)
    print("revise:", ", ".join(f"{name} {value}" for name, value in facts.items()))
    if not rows:
        raise ReviseError(_nothing(trees, rules, counts))
    write_rows(job.out / ROWS_FILE, rows)
    job.progress(len(rows), len(rows), "rows", force=True)


def judge_protocol(config: JobConfig) -> dict[str, Any] | None:
    """All that decides what an answer of the judge means besides the actor that is asked: what a
    comparison of revisions holds against another's. None where nothing is judged."""
    return None if config["judge"] is None else {"judge": {**config["judge"], **config["decode"]}}


def _write_judgements(job: Job, judge: Judge | None) -> dict[str, Any]:
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


_HOPELESS = 20
"""So many pairs lost beyond the budget end the stage at once."""

Item = TypeVar("Item")


class RevisionServers:
    """Cuts and trials of pairs; `judge` and `replayer` are None where they are not needed."""

    def __init__(self, job: Job, judge: Judge | None, replayer: Replayer | None) -> None:
        self.judge = judge
        self.replayer = replayer
        self._job = job
        self._concurrency: int = job.placement["concurrency"]
        self._budget: float = job.placement["error_budget"]
        self._pairs = 0
        self._lost: list[str] = []

    async def find_cuts(self, pairs: Sequence[Pair]) -> Sequence[Cut]:
        """The cut of each pair by the judge; one that was lost says so."""
        judge = self.judge
        assert judge is not None
        found: dict[str, Cut] = {}
        done = 0

        async def find(pair: Pair) -> None:
            nonlocal done
            bad, good = pair.tree.steps(pair.bad), pair.tree.steps(pair.good)
            try:
                cut = await judge.cut(pair.tree, bad, shared_length(bad, good), pair.name)
            except InfrastructureError as error:
                self._miss(f"{pair.name}: {error}")
                cut = Cut(None, without="error")
            found[pair.name] = cut
            done += 1
            self._job.progress(done, len(pairs), "pairs")

        self._pairs += len(pairs)
        # Pairs of one tree ask the same first questions; of several trees they never wait for
        # each other.
        await run_concurrently(_alternating(pairs), self._concurrency, find)
        self._hold_budget()
        return [found[pair.name] for pair in pairs]

    async def try_out(self, splices: Sequence[tuple[Pair, int]]) -> Sequence[Trial | None]:
        """The trial of each pair cut at a length, or None where it was lost."""
        replayer = self.replayer
        assert replayer is not None
        found: dict[str, Trial | None] = {}

        async def attempt(splice: tuple[Pair, int]) -> None:
            pair, length = splice
            try:
                found[pair.name] = await replayer.trial(pair, length)
            except InfrastructureError as error:
                self._miss(f"{pair.name}: {error}")
                found[pair.name] = None
            self._job.progress(len(found), len(splices), "replays")

        if self.judge is None:
            self._pairs += len(splices)
        await run_concurrently(splices, self._concurrency, attempt)
        self._hold_budget()
        return [found[pair.name] for pair, _ in splices]

    def _miss(self, message: str) -> None:
        self._lost.append(message)
        if len(self._lost) > self._allowed() + _HOPELESS:
            self._hold_budget()

    def _allowed(self) -> int:
        return int(self._budget * self._pairs + 1e-9)

    def _hold_budget(self) -> None:
        if len(self._lost) <= self._allowed():
            return
        shown = "\n".join(f"  {line}" for line in self._lost[:5])
        raise ErrorBudgetError(
            f"{len(self._lost)} of {self._pairs} pairs were lost to an infrastructure error; "
            f"error_budget allows {self._allowed()}. Answers are kept: a rerun requests only the "
            f"rest.\n{shown}"
        )


@asynccontextmanager
async def connect(
    job: Job,
    rules: ReviseRules,
    decode: Mapping[str, Any] | None,
) -> AsyncIterator[RevisionServers]:
    """The servers that the job leases: a policy to judge, an environment to try splices out in."""
    concurrency: int = job.placement["concurrency"]

    async def lost() -> str | None:
        return await lost_server(job.leases)

    async with AsyncExitStack() as stack:
        judge: Judge | None = None
        replayer: Replayer | None = None
        if rules.judge is not None:
            assert decode is not None
            chat = await stack.enter_async_context(
                chat_client(job.leases["policy"], concurrency=concurrency)
            )
            answers = stack.enter_context(
                Journal(job.work / "judgements.jsonl", ("tree", "node", "pair"))
            )
            asked = replace(rules.judge, seed=rules.seed)
            judge = Judge(asked, ChatPolicy(chat, decode), lost, answers)
            stack.callback(judge.close)
        lease = job.leases.get("environment")
        if lease is not None:
            assert rules.signal is not None
            environment = environment_client(lease, concurrency=concurrency)
            stack.push_async_callback(environment.close_connections)
            world = AgentGymWorld(environment)
            meta = await world.meta()
            trials = stack.enter_context(
                Journal(job.work / "trials.jsonl", ("tree", "bad", "good"))
            )
            replayer = Replayer(world, rules.signal.action, meta["reward_kind"], lost, trials)
            stack.callback(replayer.close)
        yield RevisionServers(job, judge, replayer)


def _alternating(pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs with those of different trees taking turns."""
    trees: dict[str, list[Pair]] = {}
    for pair in pairs:
        trees.setdefault(pair.tree.name, []).append(pair)
    return list(_turns(list(trees.values())))


def _turns(groups: Sequence[Sequence[Item]]) -> Iterable[Item]:
    for place in range(max(map(len, groups), default=0)):
        for group in groups:
            if place < len(group):
                yield group[place]


if __name__ == "__main__":
    sys.exit(run_job("revise", revise))

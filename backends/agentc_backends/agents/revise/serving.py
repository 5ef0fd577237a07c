"""The servers of a revision: many questions and trials in flight, lost ones against a budget."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar

from agentc.program.job import Job
from agentc_backends.agents.common.connect import AgentGymWorld, ChatPolicy, lost_server
from agentc_backends.agents.common.failures import ErrorBudgetError
from agentc_backends.agents.common.journal import Journal
from agentc_backends.agents.common.runner import work_through
from agentc_backends.agents.revise.judge import Cut, Judge
from agentc_backends.agents.revise.pairs import Pair
from agentc_backends.agents.revise.replay import Replayer, Trial
from agentc_backends.agents.revise.rules import JudgeRules, ReviseRules
from agentc_backends.agents.revise.splice import shared_length
from agentc_backends.clients.errors import InfrastructureError
from agentc_backends.clients.leased import chat_client, environment_client

_HOPELESS = 20
"""So many pairs lost beyond the budget end the stage at once."""

Item = TypeVar("Item")


class Asking:
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
        await work_through(_alternating(pairs), self._concurrency, find)
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
        await work_through(splices, self._concurrency, attempt)
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
            f"error_budget allows {self._allowed()}. Answers are kept: a rerun asks only for the "
            f"rest.\n{shown}"
        )


@asynccontextmanager
async def connect(
    job: Job,
    rules: ReviseRules,
    judge_rules: JudgeRules | None,
    decode: Mapping[str, Any] | None,
) -> AsyncIterator[Asking]:
    """The servers that the job leases: a policy to judge, an environment to try splices out in."""
    concurrency: int = job.placement["concurrency"]

    async def lost() -> str | None:
        return await lost_server(job.leases)

    async with AsyncExitStack() as stack:
        judge: Judge | None = None
        replayer: Replayer | None = None
        if judge_rules is not None:
            assert decode is not None
            chat = await stack.enter_async_context(
                chat_client(job.leases["policy"], concurrency=concurrency)
            )
            answers = stack.enter_context(
                Journal(job.work / "judgements.jsonl", ("tree", "node", "pair"))
            )
            judge = Judge(judge_rules, ChatPolicy(chat, decode), lost, answers)
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
        yield Asking(job, judge, replayer)


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

"""Replies of a run of `online_rl` as its critic would have them: of several candidates the best.

The critic is read out of the run that is served, and chooses as in the job that trained it
(`trainers/online_rl/critic.py`)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from agentc_backends.servers.transformers.channel import Result
from agentc_backends.trainers.online_rl.critic import BestOf
from agentc_backends.trainers.online_rl.publishing import read_critic
from agentc_backends.trainers.online_rl.settings import RankWith

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Reranker:
    """One run's critic, on a thread of its own beside the event loop. `facts` say what ranks, and
    what of a conversation it has learnt to read."""

    choice: BestOf
    critic: RankWith
    facts: Mapping[str, Any]
    _thread: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(max_workers=1, thread_name_prefix="critic")
    )

    @classmethod
    def read(cls, root: str, candidates: int, critic: RankWith) -> Reranker:
        """That of a run in a folder. Raises ValueError where there is none."""
        found, reads = read_critic(Path(root), critic)
        facts = {"candidates": candidates, "critic": critic, **({"reads": reads} if reads else {})}
        return cls(BestOf(found, candidates), critic, facts)

    async def reload(self, root: str) -> Reranker:
        """The same with the critic of another run. Raises ValueError where that has none."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self._thread, Reranker.read, root, self.choice.candidates, self.critic
        )

    def keys(self, seed: int, replies: int) -> list[tuple[int, int]]:
        """The keys of all candidates for so many replies of a request: those of one are the first
        choices of the seed, as in the job."""
        return [(seed, number) for number in range(replies * self.choice.candidates)]

    async def best(self, prompt: Sequence[int], results: Sequence[Result]) -> list[Result]:
        """One of each reply's candidates, which stand in the order of their keys."""
        size, loop = self.choice.candidates, asyncio.get_running_loop()
        found = []
        for start in range(0, len(results), size):
            part = results[start : start + size]
            replies = [each.tokens for each in part]
            picked = await loop.run_in_executor(self._thread, self.choice.pick, prompt, replies)
            found.append(part[picked])
        return found

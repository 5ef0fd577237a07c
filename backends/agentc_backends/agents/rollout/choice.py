"""Best-of-N at test time: of several replies to each prompt the one that a critic thinks best
(SWEET-RL, arXiv 2503.15478, figure 3a; its advantage as in equation 3).

Critic and reference score the very tokens that were drawn, as `rank` does. Hidden texts reach the
critic alone: what the policy is asked, and what a row keeps, is made before they are looked up.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from agentc.program.job import Job
from agentc_backends.agents.common.connect import NO_REPLIES, ChatPolicy
from agentc_backends.agents.common.critic_scores import (
    CandidatePrompt,
    Normalisation,
    Scorer,
    advantage,
    critic_prompts,
    read_critic,
    score_turn,
)
from agentc_backends.agents.common.episode import Reply, ReplyChoice, TokenPolicy
from agentc_backends.agents.common.failures import FatalError
from agentc_backends.agents.common.prompts import Message, model_messages
from agentc_backends.agents.common.seeds import draw_seed
from agentc_backends.clients.errors import (
    ContextOverflowError,
    InfrastructureError,
    ServiceError,
    message_without_quote,
)
from agentc_backends.clients.leases import chat_client

Row = dict[str, Any]
_T = TypeVar("_T")

DIGITS = 4
"""Of an advantage behind the point."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chooser:
    """Who draws `candidates` replies, and who compares them; `shown` makes the critic's prompt of a
    turn's row. `at` gives the policy of one episode."""

    policy: TokenPolicy
    critic: Scorer
    reference: Scorer
    shown: Callable[[Row], CandidatePrompt]
    normalisation: Normalisation
    candidates: int

    def at(self, task_id: str) -> ChosenReplies:
        return ChosenReplies(self, task_id)


@dataclass(frozen=True, slots=True)
class ChosenReplies:
    """The policy of an episode whose replies are chosen."""

    chooser: Chooser
    task_id: str

    async def reply(self, messages: Sequence[Message], seed: int, affinity: str) -> Reply:
        """The candidate with the largest advantage, of equal ones the first. Raises FatalError,
        InfrastructureError, and ContextOverflowError where the prompt has no room at one of the
        models."""
        chooser = self.chooser
        said = model_messages(messages)
        seeds = [draw_seed(seed, number) for number in range(chooser.candidates)]
        replies = await _together(
            [chooser.policy.reply_with_tokens(said, each, affinity) for each in seeds]
        )
        distinct = list(dict.fromkeys(reply.tokens for reply in replies))
        advantages: tuple[float, ...] | None = None
        taken, scored = 0, 0
        if len(distinct) > 1:
            worth, scored = await self._advantages(said, distinct, affinity)
            advantages = tuple(worth[reply.tokens] for reply in replies)
            taken = max(range(len(replies)), key=advantages.__getitem__)
        return replace(
            replies[taken],
            prompt_tokens=sum(reply.prompt_tokens for reply in replies),
            completion_tokens=sum(reply.completion_tokens for reply in replies),
            choice=ReplyChoice(taken, len(distinct), advantages, scored),
        )

    async def _advantages(
        self, said: Sequence[Message], replies: Sequence[tuple[int, ...]], affinity: str
    ) -> tuple[dict[tuple[int, ...], float], int]:
        """Of each reply, and how many tokens were scored."""
        chooser = self.chooser
        turn = {
            "id": affinity,
            "task_id": self.task_id,
            "prompt": said,
            "candidates": [{"tokens": list(tokens)} for tokens in replies],
        }
        try:
            critic, reference = await _together(
                [
                    score_turn(turn, chooser.shown(turn), "reply", chooser.critic),
                    score_turn(turn, CandidatePrompt(said), "reply", chooser.reference),
                ]
            )
        # What the critic is shown may hold a hidden text, which a server may quote.
        except InfrastructureError as error:
            raise InfrastructureError(message_without_quote(error)) from None
        except ServiceError as error:
            raise FatalError(f"{affinity}: {message_without_quote(error)}") from None
        for name, row in (("critic", critic), ("reference", reference)):
            if row["end"] == "overflow":
                raise ContextOverflowError(f"{affinity}: a turn is too long for the {name}")
        pairs = zip(replies, critic["scores"], reference["scores"], strict=True)
        # How a server batches shows beyond these digits; what is taken should not depend on it.
        worth = {
            each: round(advantage(a, b, chooser.normalisation), DIGITS) for each, a, b in pairs
        }
        return worth, critic["tokens"] + reference["tokens"]


@asynccontextmanager
async def open_chooser(job: Job, policy: ChatPolicy, candidates: int) -> AsyncIterator[Chooser]:
    """Clients of the job's critic and reference. A reference that is the policy itself has no lease
    of its own: the policy's server is asked. Raises FatalError where critic and hidden texts do not
    go together."""
    notes = read_critic(job.input("critic"))
    shown = critic_prompts(notes, job.inputs("privileged"))
    async with AsyncExitStack() as clients:

        async def scorer(role: str) -> ChatPolicy:
            limit = job.placement["concurrency"]
            chat = chat_client(job.leases[role], concurrency=limit)
            return ChatPolicy(await clients.enter_async_context(chat), NO_REPLIES)

        yield Chooser(
            policy=policy,
            critic=await scorer("critic"),
            reference=await scorer("reference") if "reference" in job.leases else policy,
            shown=shown,
            normalisation=notes.normalisation,
            candidates=candidates,
        )


def choice_facts(rows: Sequence[Row], candidates: int) -> dict[str, Any]:
    """What became of the choices of all episodes: `drawn` replies, turns at which they were all
    `alike`, those at which another than the first was taken (`moved`), and tokens scored."""
    choices = [choice for row in rows for choice in row.get("choices", ())]
    return {
        "drawn": candidates * len(choices),
        "alike": sum(choice["distinct"] == 1 for choice in choices),
        "moved": sum(choice["taken"] > 0 for choice in choices),
        "scored_tokens": sum(row["tokens"].get("scored", 0) for row in rows),
    }


async def _together(asked: Sequence[Awaitable[_T]]) -> list[_T]:
    """All answers; where one fails, the others are not waited for."""
    tasks = [asyncio.ensure_future(each) for each in asked]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

"""Scores every turn of a job with the one model that it leases: as many at once as it may, finished
ones in a journal, lost ones against a budget. The jobs of both models work alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from agentc.program.job import Job
from agentc_backends.agents.common.connect import NO_REPLIES, ChatPolicy, lost_server
from agentc_backends.agents.common.critic_scores import CandidatePrompt, Span, score_row, score_turn
from agentc_backends.agents.common.failures import FatalError
from agentc_backends.agents.common.journal import Journal
from agentc_backends.agents.common.runner import Row, WorkProgress, play_unfinished
from agentc_backends.clients.errors import (
    InfrastructureError,
    ServiceError,
    message_without_quote,
)
from agentc_backends.clients.leases import chat_client


async def score_turns(
    job: Job,
    turns: Sequence[Row],
    prompt_of: Callable[[Row], CandidatePrompt],
    span: Span,
) -> list[Row]:
    """Rows of scores by the model that the job leases, in the order of the turns. What could
    not be sampled is not scored, and keeps its end. Raises FatalError where the server refuses."""
    job_leases = job.leases

    async def lost() -> str | None:
        return await lost_server(job_leases)

    def broken(place: int, error: InfrastructureError) -> Row:
        return score_row(heads[place], "error", error)

    # Their candidates' tokens are many times what is kept of them.
    heads = [{name: turn[name] for name in ("id", "task_id", "end")} for turn in turns]
    asked = [place for place, head in enumerate(heads) if head["end"] == "sampled"]
    async with chat_client(job_leases["policy"], concurrency=job.placement["concurrency"]) as chat:
        scorer = ChatPolicy(chat, NO_REPLIES)

        async def score(place: int) -> Row:
            turn = turns[place]
            try:
                return await score_turn(turn, prompt_of(turn), span, scorer)
            # What the model is shown may hold a hidden text, which a server may quote.
            except InfrastructureError as error:
                raise InfrastructureError(message_without_quote(error)) from None
            except ServiceError as error:
                raise FatalError(f"{turn['id']}: {message_without_quote(error)}") from None

        progress = WorkProgress(
            job=job, total=len(asked), noun="turns", speed="tokens_per_s", digits=1
        )
        with Journal(job.work / "scores.jsonl", ("id",)) as journal:
            scored = await play_unfinished(
                asked,
                journal,
                progress,
                key=lambda place: (heads[place]["id"],),
                play=score,
                reward=lambda row: None,
                made=lambda row: row["tokens"],
                lost=lost,
                broken=broken,
                name=lambda place: str(heads[place]["id"]),
            )
    rows = [*scored]
    job.facts(
        rows=len(turns),
        scores=sum(len(row["scores"]) for row in rows),
        scored_tokens=sum(row["tokens"] for row in rows),
        errors=sum(row["end"] == "error" for row in rows),
        resumed=progress.resumed,
        ends=dict(sorted(Counter(row["end"] for row in rows).items())),
        **progress.per_second,
    )
    found = {row["id"]: row for row in rows}
    return [found.get(head["id"]) or score_row(head, head["end"]) for head in heads]

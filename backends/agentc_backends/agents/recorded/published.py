"""Has programs of others play the episodes of a job, and publishes them: proofs, rows, and those
that have none.

Neighbours: `exact.py`, `episode_row.py`; whose jobs: `agents/command`, `agents/verifiers`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

from agentc.program.job import Job, write_rows
from agentc_backends.agents.common.connect import ChatPolicy
from agentc_backends.agents.common.episode import Attempt, EpisodeRecord, EpisodeRules
from agentc_backends.agents.common.failures import FatalError
from agentc_backends.agents.common.play_attempts import play_attempts
from agentc_backends.agents.common.runner import Lost, Row
from agentc_backends.agents.recorded.exact import ProvedConversation, rebuilt
from agentc_backends.agents.recorded.exchange import Message
from agentc_backends.agents.recorded.history import REASONS, Unproved
from agentc_backends.agents.recorded.session import RecordedSession
from agentc_backends.clients.errors import InfrastructureError, ServiceError

REFUSED = "refused.jsonl"
"""Beside the rows: the episodes that have none, and why."""
UNPROVED = "unproved"
"""The field of a row that was not proved: its reason, and where."""


async def proved(policy: ChatPolicy, recorded: RecordedSession) -> ProvedConversation | Unproved:
    """The conversation of an episode, as the server writes it. Raises InfrastructureError."""

    async def tokenize(messages: Sequence[Message], *, ended: bool = True) -> list[int]:
        if ended:
            return await policy.tokenize(messages, opened=False)
        return await policy.tokens_begun(messages)

    if recorded.cut_off:
        return Unproved("edited", "the program let go of a reply before it had ended")
    if recorded.overflowed and not recorded.exchanges:
        return Unproved("silent", "the first prompt is longer than the context")
    try:
        return await rebuilt(recorded.exchanges, tokenize)
    except ServiceError as error:
        raise InfrastructureError(str(error)) from error


async def play_recorded(
    job: Job,
    rules: EpisodeRules,
    attempts: Sequence[Attempt],
    *,
    play: Callable[[Attempt], Awaitable[Row]],
    lost: Lost,
    keeps_all: bool,
) -> None:
    """Play all attempts and publish them; the facts say of how many episodes nothing is proved.
    Raises what `play_rest` does, and FatalError where no row is left."""

    def broken(attempt: Attempt, error: InfrastructureError) -> Row:
        return EpisodeRecord(rules, attempt, "policy").row("error", str(error))

    rows, facts = await play_attempts(job, attempts, play=play, lost=lost, broken=broken)
    refused = Counter(row[UNPROVED]["reason"] for row in rows if UNPROVED in row)
    job.facts(
        **facts,
        proved=len(rows) - refused.total() - facts["errors"],
        unproved=dict(sorted(refused.items())),
    )
    for reason, number in sorted(refused.items()):
        print(f"no row can be proved of {number} episodes: {REASONS[reason]} ({reason})")
    _publish(job, rows, keeps_all=keeps_all)


def _publish(job: Job, rows: Sequence[Row], *, keeps_all: bool) -> None:
    """Write trajectories.jsonl and refused.jsonl. Raises FatalError where no row is left."""
    refused = [row for row in rows if UNPROVED in row]
    kept = rows if keeps_all else [row for row in rows if UNPROVED not in row]
    if not kept:
        first = refused[0]
        why = first[UNPROVED]
        raise FatalError(
            f"not one of {len(rows)} episodes can be proved to train what was drawn; the first, "
            f"{first['id']}: {REASONS[why['reason']]} ({why['detail']}). docs/harnesses.md says "
            "what that means; `evaluate` needs no proof"
        )
    write_rows(job.out / "trajectories.jsonl", kept)
    write_rows(
        job.out / REFUSED,
        [
            {name: row[name] for name in ("id", "task_id", "attempt", "reward", "end", "turns")}
            | row[UNPROVED]
            for row in refused
        ],
    )

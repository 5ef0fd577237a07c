"""What a job writes and says of episodes that programs of others played: proofs, rows, and those
that have none.

Neighbours: `exact.py`, `episode_row.py`; whose jobs: `agents/command`, `agents/verifiers`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from agentc.runtime.program import Job, write_rows
from agentc_backends.agents.client.errors import InfrastructureError, ServiceError
from agentc_backends.agents.common.connect import ChatPolicy
from agentc_backends.agents.common.failures import FatalError
from agentc_backends.agents.common.rest import WorkProgress
from agentc_backends.agents.common.runner import Row
from agentc_backends.agents.recorded.exact import ProvedConversation, rebuilt
from agentc_backends.agents.recorded.exchange import Message
from agentc_backends.agents.recorded.history import REASONS, Unproved
from agentc_backends.agents.recorded.session import RecordedSession

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


def tell(job: Job, rows: Sequence[Row], progress: WorkProgress) -> None:
    """The facts of a rollout, and of how many episodes nothing is proved."""
    stops: Counter[str] = Counter()
    for row in rows:
        stops.update(row["stops"])
    refused = Counter(row[UNPROVED]["reason"] for row in rows if UNPROVED in row)
    job.facts(
        episodes=len(rows),
        errors=sum(row["end"] == "error" for row in rows),
        resumed=progress.resumed,
        reward_mean=progress.mean,
        successes=sum(row["success"] for row in rows),
        ends=dict(sorted(Counter(row["end"] for row in rows).items())),
        stops=dict(sorted(stops.items())),
        turns=sum(row["turns"] for row in rows),
        invalid=sum(row["invalid"] for row in rows),
        prompt_tokens=sum(row["tokens"]["prompt"] for row in rows),
        completion_tokens=sum(row["tokens"]["completion"] for row in rows),
        proved=len(rows) - refused.total() - sum(row["end"] == "error" for row in rows),
        unproved=dict(sorted(refused.items())),
        **progress.per_second,
    )
    for reason, number in sorted(refused.items()):
        print(f"no row can be proved of {number} episodes: {REASONS[reason]} ({reason})")


def publish(job: Job, rows: Sequence[Row], *, keeps_all: bool) -> None:
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

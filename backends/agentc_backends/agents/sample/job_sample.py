"""Job: draw candidates. `python -m agentc_backends.agents.sample.job_sample JOB.json`.

Lease: `policy`. Finished turns lie in `work/turns.jsonl`, so a rerun after a kill asks for the rest
only. Exit 75 means infrastructure: another run may succeed.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence

from agentc.runtime.program import Job, read_rows, write_rows
from agentc_backends.agents.client.errors import InfrastructureError
from agentc_backends.agents.client.leased import chat_client
from agentc_backends.agents.common.agreement import compare_with_trainer
from agentc_backends.agents.common.connect import ChatPolicy, lost_server
from agentc_backends.agents.common.failures import FatalError
from agentc_backends.agents.common.journal import Journal
from agentc_backends.agents.common.program import run_job
from agentc_backends.agents.common.rest import WorkProgress, play_rest
from agentc_backends.agents.common.runner import Row
from agentc_backends.agents.sample.candidates import candidates_of, turn_row
from agentc_backends.agents.sample.draw import DrawCounts, SampleRules, Turn, drawn_turns

_ON_OVERFLOW = (
    "`on_overflow: error` makes that a failure of the stage; `drop` would leave the turn without "
    "candidates."
)


async def sample(job: Job) -> None:
    """Ask for all candidates and write candidates.jsonl."""
    decode = job.config["decode"]
    rules = job.config.read_as(SampleRules)
    job.config.assert_all_read()
    rows = [list(read_rows(path / "trajectories.jsonl")) for path in job.inputs("rollouts")]
    turns, counts = drawn_turns(rows, rules)
    if not turns:
        raise FatalError(
            f"of {sum(map(len, rows))} trajectories {counts.trajectories} were taken, and they "
            "have no turn: raise `fraction` or `limit`"
        )
    async with chat_client(job.leases["policy"], concurrency=job.placement["concurrency"]) as chat:
        policy = ChatPolicy(chat, decode)
        await compare_with_trainer(job, policy)
        with Journal(job.work / "turns.jsonl", ("id",)) as journal:
            made = await _draw_all(job, rules, turns, counts, policy, journal)
    write_rows(job.out / "candidates.jsonl", [_published(row) for row in made])


async def _draw_all(
    job: Job,
    rules: SampleRules,
    turns: Sequence[Turn],
    counts: DrawCounts,
    policy: ChatPolicy,
    journal: Journal,
) -> list[Row]:
    async def draw(turn: Turn) -> Row:
        return await candidates_of(turn, rules, policy)

    async def lost() -> str | None:
        return await lost_server(job.leases)

    def broken(turn: Turn, error: InfrastructureError) -> Row:
        return turn_row(turn, "error", error)

    progress = WorkProgress(job=job, total=len(turns), noun="turns", speed="tokens_per_s", digits=1)
    rows = await play_rest(
        turns,
        journal,
        progress,
        key=lambda turn: (turn.id,),
        play=draw,
        reward=lambda row: None,
        made=lambda row: row["tokens"]["completion"],
        lost=lost,
        broken=broken,
        name=lambda turn: turn.id,
    )
    drawn = [row for row in rows if row["end"] == "sampled"]
    stops = Counter(each["stop"] for row in drawn for each in row["candidates"])
    job.facts(
        rows=len(rows),
        trajectories=counts.trajectories,
        replies=sum(len(row["candidates"]) for row in drawn),
        unique=sum(row["candidates_unique"] for row in drawn),
        alike=sum(row["candidates_unique"] == 1 < len(row["candidates"]) for row in drawn),
        taken_drawn=sum(any(c["text"] == row["taken"] for c in row["candidates"]) for row in drawn),
        ends=dict(sorted(Counter(row["end"] for row in rows).items())),
        stops=dict(sorted(stops.items())),
        left_out={name: count for name, count in sorted(counts.left_out.items()) if count},
        errors=sum(row["end"] == "error" for row in rows),
        resumed=progress.resumed,
        prompt_tokens=sum(row["tokens"]["prompt"] for row in rows),
        completion_tokens=sum(row["tokens"]["completion"] for row in rows),
        **progress.per_second,
    )
    if drawn and all(row["candidates_unique"] == 1 for row in drawn) and rules.candidates > 1:
        job.warn(
            "the candidates of every turn are the same text: nothing tells them apart, so no pair "
            "can be made of them; raise `decode.temperature`, or sample with a policy that is less "
            "certain"
        )
    return rows


def _published(row: Row) -> Row:
    return {name: value for name, value in row.items() if name not in ("tokens", "error")}


if __name__ == "__main__":
    sys.exit(run_job("sample", sample, on_overflow=_ON_OVERFLOW))

"""Job: draw candidates. `python -m agentc_backends.agents.sample.job_sample JOB.json`.

Lease: `policy`. Finished turns lie in `work/turns.jsonl`, so a rerun after a kill asks for the rest
only. Exit 75 means infrastructure: another run may succeed.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence

from agentc.kinds.search import DrawnTurns
from agentc.program.artifact_files import CANDIDATES_FILE, TRAJECTORIES_FILE
from agentc.program.job import Job, write_rows
from agentc_backends.agents.common.agreement import compare_with_trainer
from agentc_backends.agents.common.connect import ChatPolicy, lost_server
from agentc_backends.agents.common.failures import FatalError
from agentc_backends.agents.common.journal import Journal, stored_rows
from agentc_backends.agents.common.program import run_job
from agentc_backends.agents.common.runner import Row, WorkProgress, play_unfinished
from agentc_backends.agents.sample.candidates import (
    DrawCounts,
    Turn,
    draw_candidates,
    draw_turns,
    turn_row,
)
from agentc_backends.clients.errors import InfrastructureError
from agentc_backends.clients.leases import chat_client

_COUNTED = (
    *("replies", "unique", "alike", "taken_drawn"),
    *("prompt_tokens", "completion_tokens"),
)
_ON_OVERFLOW = (
    "`on_overflow: error` makes that a failure of the stage; `drop` would leave the turn without "
    "candidates."
)


async def sample(job: Job) -> None:
    """Ask for all candidates and write candidates.jsonl."""
    decode = job.config["decode"]
    rules = job.config.read_as(DrawnTurns)
    job.config.assert_all_read()
    rows = [stored_rows(path / TRAJECTORIES_FILE) for path in job.inputs("rollouts")]
    turns, counts = draw_turns(rows, rules)
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
    write_rows(job.out / CANDIDATES_FILE, map(_published, made))


async def _draw_all(
    job: Job,
    rules: DrawnTurns,
    turns: Sequence[Turn],
    counts: DrawCounts,
    policy: ChatPolicy,
    journal: Journal,
) -> Sequence[Row]:
    async def draw(turn: Turn) -> Row:
        return await draw_candidates(turn, rules, policy)

    async def lost() -> str | None:
        return await lost_server(job.leases)

    def broken(turn: Turn, error: InfrastructureError) -> Row:
        return turn_row(turn, "error", error)

    progress = WorkProgress(job=job, total=len(turns), noun="turns", speed="tokens_per_s", digits=1)
    rows = await play_unfinished(
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
    numbers, ends, stops = Counter[str](), Counter[str](), Counter[str]()
    for row in rows:
        ends[row["end"]] += 1
        numbers.update(_counted(row))
        stops.update(each["stop"] for each in row["candidates"])
    job.facts(
        rows=len(rows),
        trajectories=counts.trajectories,
        **{name: numbers[name] for name in _COUNTED},
        ends=dict(sorted(ends.items())),
        stops=dict(sorted(stops.items())),
        left_out={name: count for name, count in sorted(counts.left_out.items()) if count},
        errors=ends["error"],
        resumed=progress.resumed,
        **progress.per_second,
    )
    if ends["sampled"] and numbers["unique"] == ends["sampled"] and rules.candidates > 1:
        job.warn(
            "the candidates of every turn are the same text: nothing distinguishes them, so no "
            "pair "
            "can be made of them; raise `decode.temperature`, or sample with a policy that is less "
            "certain"
        )
    return rows


def _counted(row: Row) -> dict[str, int]:
    """What a row adds to the facts, by their names."""
    candidates, unique = row["candidates"], row["candidates_unique"]
    return {
        "replies": len(candidates),
        "unique": unique,
        "alike": int(unique == 1 < len(candidates)),
        "taken_drawn": int(any(each["text"] == row["taken"] for each in candidates)),
        "prompt_tokens": row["tokens"]["prompt"],
        "completion_tokens": row["tokens"]["completion"],
    }


def _published(row: Row) -> Row:
    return {name: value for name, value in row.items() if name not in ("tokens", "error")}


if __name__ == "__main__":
    sys.exit(run_job("sample", sample, on_overflow=_ON_OVERFLOW))

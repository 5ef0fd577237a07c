"""A job program that counts what is computed, in a journal outside of the store.

Config: `journal`, `units` (pieces of work, each kept as soon as it is done), `delay` (seconds a
unit), `of` (what is made; else trajectories). A line of the journal is `unit KEY NUMBER`, or
`overlap KEY` when another process computes the same key at this moment.
"""

import json
import os
import time
from pathlib import Path
from typing import Any

from agentc.program.job import load_job
from agentc.runtime.store.object_lock import start_time

job = load_job()
values = job.spec["config"]
journal = Path(values["journal"])


def note(line: str) -> None:
    descriptor = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, (line + "\n").encode())
    os.close(descriptor)


# Processes of other name spaces cannot be told to be alive from here.
guard = journal.with_name(f"at-work-{job.key}-{Path('/proc/self/ns/pid').readlink()}")
try:
    pid = int(guard.read_text())
except (OSError, ValueError):
    pid = 0
if pid and start_time(pid) is not None and pid != os.getpid():
    note(f"overlap {job.key}")
guard.write_text(str(os.getpid()))

kept = job.work / "units"
with kept.open("ab", buffering=0) as out:
    for number in range(len(kept.read_bytes().splitlines()), values["units"]):
        time.sleep(values["delay"])
        out.write(b"%d\n" % number)
        note(f"unit {job.key} {number}")
guard.unlink()

read = sorted(
    len(rows.read_text().splitlines())
    for role in job.spec["inputs"]
    for folder in job.inputs(role)
    for rows in folder.glob("*.jsonl")
)


def trajectory(number: int, line: str) -> dict[str, Any]:
    return {
        "attempt": 0,
        "seed": sum(read),
        "prompt_seed": 0,
        "split": "train",
        **conversation(number, line),
        "success": True,
        "end": "success",
        "error": None,
        "turns": 1,
        "invalid": 0,
        "rewards": [1.0],
        "tokens": {"prompt": 1, "completion": 1},
    }


def conversation(number: int, line: str) -> dict[str, Any]:
    return {
        "id": f"{number}#0",
        "task_id": str(number),
        "source": "policy",
        "messages": [
            {"role": "user", "content": f"continue from {sum(read)}"},
            {"role": "assistant", "content": f"Action: {line}"},
        ],
        "prompt_length": 1,
        "reward": 1.0,
    }


# What backends of kind `rollout` make, or those of counted_agents.
shape, name = (conversation, "rows") if "of" in values else (trajectory, "trajectories")
done = [shape(number, line) for number, line in enumerate(kept.read_text().splitlines())]
with (job.out / f"{name}.jsonl").open("w") as out:
    out.writelines(json.dumps(row) + "\n" for row in done)
job.facts(rows=len(done))

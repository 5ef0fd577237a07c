"""Bench c: an experiment through `agentc run`, against the order in which ETO's script works.

The baseline is generous to the script; `notes/benchmarks.md` says how.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure
from benchmarks.processes import Cost
from benchmarks.reduced import Size
from benchmarks.workplace import Workplace, jobs_of, object_folder

EXPLORERS = 4
"""Clients that explore at once in ETO's script, each with one episode at a time."""


def measure_script_order(workplace: Workplace) -> list[Figure]:
    """The reduced quickstart, each way once, each in a fresh store."""
    _, plan = workplace.reduced("script", Size(exploring=EXPLORERS, evaluating=1))
    store = workplace.store("script")
    nothing = Cost(0.0, 0.0)
    rollouts, rest = nothing, nothing
    for job in jobs_of(plan):
        cost = workplace.job(plan, store, job["id"])
        if job["kind"] == "rollout":
            rollouts += cost
        else:
            rest += cost
    script = rollouts + rest
    _, finished, ours = workplace.finished()
    same, compared = _equal_episodes(plan, store, finished)
    return [
        Figure(
            bench="c",
            name="reduced quickstart, `agentc run`",
            value=ours.wall_s,
            unit="s",
            note=f"CPU {ours.cpu_s:.0f} s; {_server_starts(finished)} starts of the model server",
        ),
        Figure(
            bench="c",
            name="its jobs in the order of ETO's script",
            value=script.wall_s,
            unit="s",
            ratio=script.wall_s / ours.wall_s,
            against="`agentc run`, by the clock",
            note=f"{_server_starts(store)} starts of the model server; rollouts take "
            f"{rollouts.wall_s:.0f} s of it; {same} of {compared} rollouts have equal rows",
        ),
        Figure(
            bench="c",
            name="the same, seconds of CPU",
            value=script.cpu_s,
            unit="s",
            ratio=script.cpu_s / ours.cpu_s,
            against="`agentc run`, CPU",
            note=f"rollouts take {rollouts.cpu_s:.0f} s of it",
        ),
    ]


def _server_starts(store: Path) -> int:
    """How often a model server was started for what a store holds."""
    made = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in (store / "objects").glob("*/*/artifact.json")
    ]
    # The members of a session name its server too.
    shared = {name for one in made for name in one.get("members", {}).values()}
    own = [one for one in made if f"{one['kind']}/{one['key']}" not in shared]
    return sum(lease["role"] == "policy" for one in own for lease in one["leases"])


def _equal_episodes(plan: Path, one: Path, other: Path) -> tuple[int, int]:
    """How many rollouts of a plan have the same rows in both stores, and of how many."""
    rollouts = [job for job in jobs_of(plan) if job["kind"] == "rollout"]
    equal = [_rows(one, job) == _rows(other, job) for job in rollouts]
    return sum(equal), len(equal)


def _rows(store: Path, job: dict[str, Any]) -> bytes:
    return (object_folder(store, job) / "data" / "trajectories.jsonl").read_bytes()

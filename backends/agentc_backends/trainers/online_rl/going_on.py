"""A run that goes on from another one, as if that had been longer: its policy, critic, optimisers
and episodes, and where it ended.

All that is drawn depends on the number of the iteration, which counts on, and the artifact holds
what the other one does, so that 150 iterations and 150 from there publish the bytes of 300.
Neighbours: `loop.py`, `run_state.py`.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentc.program.job import Job, each_row
from agentc_backends.agents.common.failures import FatalError
from agentc_backends.trainers.online_rl.learner import Learner
from agentc_backends.trainers.online_rl.loop import Beginning
from agentc_backends.trainers.online_rl.run_files import CURVE, EPISODES
from agentc_backends.trainers.online_rl.run_state import STATE, read_learner


def beginning(job: Job, learner: Learner) -> Beginning:
    """Where the job's run begins, with the state of the run that it goes on from put into the
    learner. Raises FatalError for a run without its state, or with that of another learner."""
    folders = job.inputs("start")
    if not folders:
        return Beginning()
    [folder] = folders
    if not (folder / STATE).is_dir():
        raise FatalError(
            "the run to go on from did not publish its state; run it with `publish_state: true`"
        )
    read_learner(folder / STATE, learner)
    told = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    *_, last = each_row(folder / CURVE)
    return Beginning(told["iterations"], _by_iteration(folder), last)


def _by_iteration(folder: Path) -> Iterator[Sequence[Mapping[str, Any]]]:
    rows = each_row(folder / EPISODES)
    for _, group in itertools.groupby(rows, key=lambda row: row["iteration"]):
        yield [*group]

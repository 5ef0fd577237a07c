"""Runs under SLURM with queue and clock told to them; tests/slurm has the real ones."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tiny_plan import TinyPlan

from agentc.placement.profile import Profile
from agentc.plan.work import Work, find_work, read_plan
from agentc.run.observe import JobSnapshot
from agentc.run.slurm_queue import EndsFile, QueueError, QueueState
from agentc.run.slurm_records import WaitingRecord
from agentc.run.slurm_waiting import Explain
from agentc.run.slurm_watch import QueueWatch, Verdict
from agentc.runtime.store.layout import StoreLayout

AWAY = "sbatch: error: Unable to contact slurm controller (connect failure)"
SLURM = Profile(name="ours", file=Path("config.yaml"), settings={"executor": "slurm"})


@dataclass
class Lines:
    """A view that keeps what is said."""

    said: list[str] = field(default_factory=list)

    def show(self, jobs: Sequence[JobSnapshot]) -> None:
        pass

    def print_line(self, text: str, *, passing: bool = False) -> None:
        self.said.append(text)


class Scene:
    """A plan with two jobs, submitted as 7 and 8, a log, a queue, and a clock."""

    def __init__(
        self,
        plan: TinyPlan,
        *,
        keep_going: bool = False,
        explain: Explain = lambda unit: (),
        shared: Sequence[str] = (),
    ) -> None:
        """`shared` are jobs that use a shared server."""
        self.plan, self.log = plan, plan.folder / "snakemake.log"
        for name in ("first", "second"):
            plan.job(name, rows=1, say=name)
        self.work: Work = find_work(read_plan(plan.write()), StoreLayout(plan.store))
        if shared:
            lease = {"id": "server/policy", "key": "k1", "scope": "shared", "clients": list(shared)}
            self.work.document["servers"] = [lease]
        self.record = WaitingRecord(self.work.layout, "tiny", "x")
        self.queue: dict[str, str] | None = {"7": "RUNNING", "8": "RUNNING"}
        self.now = 0.0
        self.asked_for: list[list[str]] = []
        self.ends = EndsFile(self.log.with_suffix(".ends.json"))
        lines = [
            f"Job 1 has been submitted with SLURM jobid {number} (log: /x/rule_{kind}/{key}/1.log)."
            for number, (kind, key) in enumerate(
                (plan.object(name).split("/") for name in ("first", "second")), start=7
            )
        ]
        self.log.write_text("\n".join(lines) + "\n")
        self.watch = QueueWatch(
            self.work,
            self.log,
            0,
            self._ask,
            keep_going=keep_going,
            ends=self.ends,
            record=self.record,
            explain=explain,
            clock=lambda: self.now,
        )

    def _ask(self, numbers: Collection[str]) -> dict[str, QueueState]:
        """`HELD` and such: a state and, after a blank, SLURM's reason."""
        self.asked_for.append(sorted(numbers))
        if self.queue is None:
            raise QueueError("squeue: no answer")
        return {number: QueueState(*said.split(" ", 1)) for number, said in self.queue.items()}

    def publish(self, name: str) -> None:
        assert self.plan.run(name).returncode == 0

    def asked(self, resources: str) -> None:
        with self.log.open("a") as log:
            log.write(f"    resources: {resources}\n")

    def finished(self) -> None:
        with self.log.open("a") as log:
            log.write("Finished jobid: 1 (Rule: rollout)\n")

    def after(self, seconds: float, **queue: str) -> tuple[Verdict, list[str]]:
        """What a look finds that much later."""
        if self.queue is not None:
            self.queue.update({number.strip("_"): state for number, state in queue.items()})
        self.now += seconds
        self.watch._next = self.now
        assert self.watch.check() == ("wait", []), "it asks first"
        while not self.watch._asked or not self.watch._asked.done():
            time.sleep(0.001)
        return self.watch.check()

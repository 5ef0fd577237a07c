"""Two runs on one store at the same time: over generated schedules, with kills, delays and
resumption, no key is computed twice and nothing is torn.

A hundred rounds use `schedule.py` in Snakemake's place (it starts the same wrappers); rounds with
Snakemake take several seconds each, so there are few of them unless AGENTC_ROUNDS says more. CI
plays twenty and two; all of them:

    AGENTC_ROUNDS=100 pytest -m slow tests/store/test_two_runs.py
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest
from tiny_plan import TinyPlan, drivers_of, processes_of, wait_for

from agentc.runtime.layout import StoreLayout
from agentc.store.objects import list_objects, verify_object

ROUNDS = 100
LIGHT_BLOCKS = 10
"""The hundred rounds, in tests of ten: a failure names a block of seeds, and workers share them."""


class Round:
    """Two plans over one pool of jobs, and one store. Everything follows from the seed."""

    def __init__(self, folder: Path, seed: int, *, light: bool) -> None:
        self.chance = random.Random(seed)
        self.journal = folder / "journal"
        self.words = ("light",) if light else ()
        self.plans = [self._plan(folder, name) for name in ("one", "two")]
        # Without flock the owner files decide alone, as between nodes.
        self.variables = {"AGENTC_LOCK_STALE_S": "20"}
        if self.chance.random() < 0.3:
            self.variables["AGENTC_FLOCK"] = "off"
            self.variables["AGENTC_LOCK_STALE_S"] = "4"
        self.kills = self.chance.random() < 0.4

    def _plan(self, folder: Path, name: str) -> TinyPlan:
        plan = TinyPlan(folder / name, name=self.chance.choice(["same", name]))
        plan.store = folder / "store"
        pool: list[str] = []
        # Jobs of one name are the same job in both plans as long as their inputs are.
        for job in "abc":
            if job == "b" and self.chance.random() < 0.3:
                continue
            inputs = {"x": pool[-1:]} if pool and job == "c" else {}
            plan.job(
                job, "counted.py", inputs=inputs, kind="rollout" if job in "ab" else "pair",
                journal=str(self.journal), units=2, delay=0.01 * "abc".index(job),
            )  # fmt: skip
            pool.append(job)
        return plan

    def start(self, plan: TinyPlan) -> subprocess.Popen[str]:
        return subprocess.Popen(
            plan.run_all_argv(*self.words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, env={**os.environ, **self.variables},
        )  # fmt: skip

    def kill_something(self, runs: list[subprocess.Popen[str]], span: float) -> None:
        """One process of either run, at some moment, with -9 or gently."""
        time.sleep(self.chance.uniform(0, span))
        store = self.plans[0].store
        victims = sorted({*(run.pid for run in runs), *drivers_of(store), *processes_of(store)})
        number = self.chance.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM])
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.chance.choice(victims), number)

    def play(self, span: float) -> None:
        """Until both runs are through; whichever was cut off is begun again."""
        said: list[str] = []
        for number in range(8):
            runs = []
            for plan in self.chance.sample(self.plans, 2):
                runs.append(self.start(plan))
                time.sleep(self.chance.uniform(0, span / 4))
            if self.kills and number < 2:
                self.kill_something(runs, span)
            said += [run.communicate(timeout=240)[0] for run in runs]
            if all(run.returncode == 0 for run in runs):
                return
            assert self.kills, "\n".join(said)
        raise AssertionError("\n".join(said))

    def check(self) -> None:
        """Each unit of work once, nobody beside another, every object whole, nothing left."""
        store = self.plans[0].store
        wait_for(lambda: not processes_of(store) and not drivers_of(store), timeout=30)
        lines = self.journal.read_text().splitlines()
        assert [line for line in lines if line.startswith("overlap")] == []
        assert [line for line, count in Counter(lines).items() if count > 1] == []
        found, problems = list_objects(StoreLayout(store))
        wanted = {plan.object(job["id"]) for plan in self.plans for job in plan.jobs}
        assert {stored.name for stored in found} == wanted
        assert [*problems, *(fault for one in found for fault in verify_object(one))] == []
        left = [p for p in (store / "staging").glob("*/*") if p.name in str(wanted)]
        assert left == []
        assert list((store / "locks").glob("*.owner")) == []


def play(folder: Path, seed: int, *, light: bool, span: float) -> None:
    folder.mkdir()
    round_ = Round(folder, seed, light=light)
    try:
        round_.play(span)
        round_.check()
    except BaseException as error:
        error.add_note(f"seed {seed}, {round_.variables}, kills: {round_.kills}") if hasattr(
            error, "add_note"
        ) else print("seed", seed)
        raise


@pytest.mark.slow
@pytest.mark.parametrize(
    "block",
    [0, 1, *(pytest.param(block, marks=pytest.mark.long) for block in range(2, LIGHT_BLOCKS))],
)
def test_hundred_rounds(tmp_path: Path, block: int) -> None:
    for seed in range(block, ROUNDS, LIGHT_BLOCKS):
        play(tmp_path / str(seed), seed, light=True, span=1.0)


@pytest.mark.slow
def test_rounds_with_snakemake(tmp_path: Path) -> None:
    for seed in range(int(os.environ.get("AGENTC_ROUNDS", "2"))):
        play(tmp_path / str(seed), 1000 + seed, light=False, span=6.0)

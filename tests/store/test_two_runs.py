"""Two runs on one store at the same time: over generated schedules, with kills, delays and
resumption, no key is computed twice and nothing is torn.

A hundred rounds use `schedule.py` in Snakemake's place (it starts the same wrappers); rounds of two
`agentc run`, with all that belongs to them, take several seconds each, so there are few of them
unless AGENTC_ROUNDS says more. CI plays five and two; all of them:

    AGENTC_ROUNDS=100 pytest -m slow tests/store/test_two_runs.py
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import counted_agents
import pytest
from tests.support.patience import PATIENCE_S, wait_for
from tiny_plan import TinyPlan, drivers_of, processes_of

from agentc.backend_api import load_backends
from agentc.compilation import compile_spec
from agentc.runtime.store.layout import StoreLayout
from agentc.store.objects import list_objects, verify_object

ROUNDS = 100
LIGHT_BLOCKS = 20
"""The hundred rounds, in tests of five: a failure names its seeds, and workers share them."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of two runs: the command that starts or resumes it, and the objects that it makes."""

    argv: Sequence[str]
    wanted: frozenset[str]


class Round:
    """Two sides and one store. Everything follows from the seed."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.chance = random.Random(seed)
        self.store = folder / "store"
        self.journal = folder / "journal"
        self.sides: list[Side] = []
        # Without flock the owner files decide alone, as between nodes.
        self.variables = {"AGENTC_LOCK_STALE_S": "20"}
        if self.chance.random() < 0.3:
            self.variables["AGENTC_FLOCK"] = "off"
            self.variables["AGENTC_LOCK_STALE_S"] = "4"
        self.kills = self.chance.random() < 0.4

    def add_plan(self, name: str) -> None:
        """A side whose wrappers the light scheduler starts."""
        plan = TinyPlan(self.folder / name, name=self.chance.choice(["same", name]))
        plan.store = self.store
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
        wanted = frozenset(plan.object(job["id"]) for job in plan.jobs)
        self.sides.append(Side(plan.run_all_argv("light"), wanted))

    def add_spec(self, name: str) -> None:
        """A side that is `agentc run` of a spec, with the backends of `counted_agents`."""
        stages, pool = [], "ab" if self.chance.random() < 0.7 else "a"
        for job in pool:
            stages.append(f"  {job}: {{kind: dataset, {self._counted(2, 0.01 * 'ab'.index(job))}}}")
        # Runs of one name whose plans differ must not get into each other's folders.
        mixed = f"agent: a, general: {pool[-1]}, general_share: 0.5, share_of: total"
        counted = self._counted(self.chance.choice([2, 2, 3]), 0.02)
        stages.append(f"  c: {{kind: mix, {mixed}, {counted}}}")
        spec = self.folder / f"{name}.yaml"
        head = f"agentc: 1\nname: {self.chance.choice(['same', name])}\nstages:\n"
        spec.write_text(head + "\n".join(stages) + "\n")
        compiled = compile_spec(spec, {}, load_backends())
        assert compiled.plan is not None, compiled.diagnostics
        made = [job for job in compiled.plan.jobs if job.draft.kind in ("dataset", "mix")]
        wanted = frozenset(job.object for job in made)
        agentc = str(Path(sys.executable).with_name("agentc"))
        # The report would need a software stack with packages.
        words = ["run", str(spec), "--until", "c", "--store", str(self.store), "--plain", "-j", "2"]
        self.sides.append(Side([agentc, *words], wanted))

    def _counted(self, units: int, delay: float) -> str:
        options = f"{{journal: {self.journal}, units: {units}, delay: {delay}}}"
        return f"backend: counted, options: {options}"

    def start(self, side: Side) -> subprocess.Popen[str]:
        return subprocess.Popen(
            side.argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, env={**os.environ, **self.variables},
        )  # fmt: skip

    def kill_something(self, runs: list[subprocess.Popen[str]], span: float) -> None:
        """One process of either run, at some moment, with -9 or gently."""
        time.sleep(self.chance.uniform(0, span))
        found = {*drivers_of(self.store), *processes_of(self.store)}
        victims = sorted({*(run.pid for run in runs), *found})
        number = self.chance.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM])
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.chance.choice(victims), number)

    def play(self, span: float) -> None:
        """Until both runs are through; whichever was cut off is begun again."""
        said: list[str] = []
        for number in range(8):
            runs = []
            for side in self.chance.sample(self.sides, 2):
                runs.append(self.start(side))
                time.sleep(self.chance.uniform(0, span / 4))
            if self.kills and number < 2:
                self.kill_something(runs, span)
            said += [run.communicate(timeout=PATIENCE_S)[0] for run in runs]
            if all(run.returncode == 0 for run in runs):
                return
            assert self.kills, "\n".join(said)
        raise AssertionError("\n".join(said))

    def check(self) -> None:
        """Each unit of work once, nobody beside another, every object whole, nothing left."""
        wait_for(lambda: not processes_of(self.store) and not drivers_of(self.store))
        lines = self.journal.read_text().splitlines()
        assert [line for line in lines if line.startswith("overlap")] == []
        assert [line for line, count in Counter(lines).items() if count > 1] == []
        found, problems = list_objects(StoreLayout(self.store))
        wanted = frozenset.union(*(side.wanted for side in self.sides))
        assert {stored.name for stored in found} == wanted
        assert [*problems, *(fault for one in found for fault in verify_object(one))] == []
        left = [p for p in (self.store / "staging").glob("*/*") if p.name in str(wanted)]
        assert left == []
        assert list((self.store / "locks").glob("*.owner")) == []


def play(folder: Path, seed: int, add: Callable[[Round, str], None], span: float) -> None:
    folder.mkdir()
    round_ = Round(folder, seed)
    for name in ("one", "two"):
        add(round_, name)
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
    [0, *(pytest.param(block, marks=pytest.mark.long) for block in range(1, LIGHT_BLOCKS))],
)
def test_hundred_rounds(tmp_path: Path, block: int) -> None:
    for seed in range(block, ROUNDS, LIGHT_BLOCKS):
        play(tmp_path / str(seed), seed, Round.add_plan, span=1.0)


@pytest.mark.slow
def test_rounds_of_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = counted_agents.install(tmp_path / "site")
    monkeypatch.syspath_prepend(site)
    monkeypatch.setenv("PYTHONPATH", str(site))
    for seed in range(int(os.environ.get("AGENTC_ROUNDS", "2"))):
        play(tmp_path / str(seed), 1000 + seed, Round.add_spec, span=6.0)

"""Over random sequences of runs of variants, `gc` never takes an object of the last complete one of
any of them. Neighbour: `test_variants.py`."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from variant_runs import plan_text, publish

from agentc.plan.work import Work, find_work
from agentc.run.past import keep_plan
from agentc.run.record import Record
from agentc.runtime.store.layout import StoreLayout
from agentc.store import gc
from agentc.store.gc import collect, find_garbage
from agentc.store.paths import RunFolder, Variant, variant_of
from agentc.store.run_history import plan_in_use

SEEDS = 100


@dataclass
class Going:
    """A run at work: it registers, makes objects one at a time, and ends in one of many ways."""

    work: Work
    record: Record
    word: Path
    steps: Iterator[None]
    stack: ExitStack


class World:
    """A store, runs on it, and what must never be lost by what ran."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.layout = StoreLayout(folder / "store")
        self.layout.root.mkdir()
        self.chance = random.Random(seed)
        self.going: list[Going] = []
        self.complete: dict[str, set[str]] = {}
        self.editions: dict[str, int] = {}
        self.told: list[str] = []

    def begin(self) -> None:
        """The shipped parts of `agentc run`, in its order; jobs are files that appear."""
        name = self.chance.choice(["quick", "slow"])
        scale, seed = self.chance.choice([None, None, "smoke"]), self.chance.choice([0, 0, 1])
        if self.chance.random() < 0.3:
            self.editions[name] = self.editions.get(name, 0) + 1
        text = plan_text(name, scale, seed, self.editions.get(name, 0))
        document = json.loads(text)
        until = self.chance.choice([None, None, None, "j0", "j2"])
        folder = RunFolder.of_plan(self.layout, document)
        stack = ExitStack()
        digest = keep_plan(folder, text)
        word = stack.enter_context(plan_in_use(folder, digest))
        work = find_work(document, self.layout, until)
        record = Record(folder, work, began=1.0)
        record.open(text, folder.path)
        self.told.append(f"run {variant_of(document).label} until {until} of edition {digest}")
        self.going.append(Going(work, record, word, self._steps(work), stack))

    def _steps(self, work: Work) -> Iterator[None]:
        for job in work.missing:
            yield
            publish(self.layout, f"rollout/{job['key']}")

    def step(self) -> None:
        if not self.going:
            return
        run = self.chance.choice(self.going)
        ending = self.chance.random()
        if ending < 0.06:
            self._end(run, 3)
        elif ending < 0.12:
            self._end(run, None)
        elif next(run.steps, "done") == "done":
            self._end(run, None if self.chance.random() < 0.2 else 0)

    def _end(self, run: Going, code: int | None) -> None:
        """By itself, or (None) by kill -9: then nothing is closed, and its process is gone."""
        document = run.work.document
        label = variant_of(document).label
        objects = {f"rollout/{job['key']}" for job in document["jobs"]}
        if all(self.layout.is_published(name) for name in document["targets"]):
            # What it is that was made last, and complete, of these three.
            which = json.dumps([document["name"], document["experiment"], document["params"]])
            self.complete[which] = {one for one in objects if self.layout.is_published(one)}
        if code is None:
            # Its word stays, of a process that is gone.
            record = json.loads(run.word.read_text())
            dead = run.word.with_name(f"dead-{run.word.name}")
            dead.write_text(json.dumps({**record, "since": "0"}))
        else:
            run.record.close(code, [])
        run.stack.close()
        self.going.remove(run)
        self.told.append(f"end of {label} with {code}")

    def collect(self) -> None:
        garbage = find_garbage(self.layout)
        if self.chance.random() < 0.5 and len(self.going) < 3:
            self.begin()
        collect(self.layout, garbage)
        self.told.append("gc")

    def check(self) -> None:
        for label, objects in self.complete.items():
            lost = [name for name in objects if not self.layout.is_published(name)]
            assert not lost, f"{label} lost {lost}:\n" + "\n".join(self.told)


def play(folder: Path, seed: int) -> None:
    world = World(folder, seed)
    for _ in range(60):
        move = world.chance.random()
        if move < 0.2 and len(world.going) < 3:
            world.begin()
        elif move < 0.85:
            world.step()
        else:
            world.collect()
            world.check()
    for run in list(world.going):
        world._end(run, 130)
    world.collect()
    world.check()


def play_block(folder: Path, seeds: Iterable[int]) -> None:
    for seed in seeds:
        (folder / str(seed)).mkdir()
        play(folder / str(seed), seed)


# Two blocks say at once that something is lost; all of them, that it is lost seldom.
@pytest.mark.parametrize(
    "block", [0, 1, *(pytest.param(block, marks=pytest.mark.long) for block in range(2, 10))]
)
def test_nothing_of_a_last_complete_run_is_ever_lost(tmp_path: Path, block: int) -> None:
    play_block(tmp_path, range(block * SEEDS // 10, (block + 1) * SEEDS // 10))


@pytest.mark.parametrize("mutation", ["by name alone", "without complete plans"])
def test_the_property_sees_what_was_lost_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mutation: str
) -> None:
    if mutation == "by name alone":
        monkeypatch.setattr(Variant, "label", property(lambda self: self.name))
    monkeypatch.setattr(gc, "complete_plans", lambda layout, count=1: [])
    monkeypatch.setattr(gc, "_was_finished", lambda layout, plan: False)
    with pytest.raises(AssertionError, match="lost"):
        play_block(tmp_path, range(SEEDS))

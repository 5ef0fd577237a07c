"""Results belong to what made them: to the name, the scale and the params of a run. Over random
sequences of runs, `gc` never takes an object of the last complete one of any of them."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agentc.cli import main
from agentc.plan.work import Work, find_work
from agentc.run.past import keep_plan
from agentc.run.record import Record
from agentc.runtime.layout import StoreLayout
from agentc.store import gc, roots
from agentc.store.gc import collect, find_garbage
from agentc.store.in_use import plan_in_use
from agentc.store.known_runs import read_history
from agentc.store.paths import RunFolder
from agentc.store.variant import Variant, variant_of

SEEDS = 100


def plan_text(name: str, scale: str | None, seed: int, edition: int, jobs: int = 4) -> str:
    """A chain of jobs. The spec's editions and seeds share what does not depend on them."""
    objects = []
    for number in range(jobs):
        depends = [edition if number > 0 else 0, seed if number > 1 else 0, scale]
        key = hashlib.sha256(repr((name, number, depends)).encode()).hexdigest()[:32]
        objects.append((f"j{number}", key))
    entries = []
    for number, (job, key) in enumerate(objects):
        before = [f"rollout/{objects[number - 1][1]}"] if number else []
        entries.append(
            {"id": job, "stage": job, "kind": "rollout", "key": key, "produces": "Trajectories",
             "inputs": {"x": before}, "leases": [], "environment": "empty"}
        )  # fmt: skip
    document = {
        "plan": 1, "name": name, "params": {"seed": seed}, "jobs": entries, "environments": {},
        "spec": {"file": "s.yaml", "sha256": "0"}, "sessions": [],
        "targets": [f"rollout/{objects[-1][1]}"],
        "experiment": {} if scale is None else {"scale": scale},
        **({"chosen": {"seed": seed}} if seed else {}),
    }  # fmt: skip
    return json.dumps(document)


def publish(layout: StoreLayout, name: str) -> None:
    folder = layout.object(name)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "artifact.json").write_text('{"files": {}, "id": "x"}')


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


@pytest.mark.parametrize("block", range(10))
def test_nothing_of_a_last_complete_run_is_ever_lost(tmp_path: Path, block: int) -> None:
    play_block(tmp_path, range(block * SEEDS // 10, (block + 1) * SEEDS // 10))


@pytest.mark.parametrize("mutation", ["by name alone", "without complete plans"])
def test_the_property_sees_what_was_lost_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mutation: str
) -> None:
    if mutation == "by name alone":
        monkeypatch.setattr(Variant, "label", property(lambda self: self.name))
    monkeypatch.setattr(roots, "complete_plans", lambda layout, count=1: [])
    monkeypatch.setattr(roots, "_was_finished", lambda layout, plan: False)
    with pytest.raises(AssertionError, match="lost"):
        play_block(tmp_path, range(SEEDS))


@pytest.fixture
def layout(tmp_path: Path) -> StoreLayout:
    (tmp_path / "store").mkdir()
    return StoreLayout(tmp_path / "store")


def run_once(layout: StoreLayout, text: str, until: str | None = None, code: int = 0) -> None:
    """A whole run of a plan, by the shipped records."""
    document = json.loads(text)
    folder = RunFolder.of_plan(layout, document)
    with plan_in_use(folder, keep_plan(folder, text)):
        work = find_work(document, layout, until)
        record = Record(folder, work, began=1.0)
        record.open(text, folder.path)
        for job in work.missing if code == 0 else ():
            publish(layout, f"rollout/{job['key']}")
        record.close(code, [])


def store_says(capsys: pytest.CaptureFixture[str], layout: StoreLayout, *words: str) -> str:
    capsys.readouterr()
    main([*words, "--store", str(layout.root)])
    shown = capsys.readouterr()
    return shown.out + shown.err


def test_a_smoke_run_and_a_seed_leave_the_full_run_alone(
    layout: StoreLayout, capsys: pytest.CaptureFixture[str]
) -> None:
    run_once(layout, plan_text("quick", None, 0, 0))
    run_once(layout, plan_text("quick", "smoke", 0, 0), until="j0")
    run_once(layout, plan_text("quick", None, 1, 0))
    assert not find_garbage(layout)
    assert "nothing to delete" in store_says(capsys, layout, "store", "gc")
    folders = sorted(path.name for path in (layout.root / "runs").iterdir())
    assert folders == ["quick", "quick@seed=1", "quick@smoke"]


def test_the_last_complete_plan_stays_until_another_is(layout: StoreLayout) -> None:
    first, second = plan_text("quick", None, 0, 0), plan_text("quick", None, 0, 1)
    run_once(layout, first)
    run_once(layout, second, until="j1")
    assert not find_garbage(layout)
    run_once(layout, second, code=3)
    assert not find_garbage(layout)
    run_once(layout, second)
    old = {f"rollout/{job['key']}" for job in json.loads(first)["jobs"]}
    new = {f"rollout/{job['key']}" for job in json.loads(second)["jobs"]}
    assert set(find_garbage(layout).objects) == old - new
    assert not find_garbage(layout, keep_runs=2)


def test_gc_says_whose_objects_go_and_which_report_shows_them(
    layout: StoreLayout, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = plan_text("quick", "smoke", 0, 0), plan_text("quick", "smoke", 0, 1)
    run_once(layout, first)
    run_once(layout, second)
    gone = f"rollout/{json.loads(first)['jobs'][3]['key']}"
    folder = RunFolder.of(layout, "quick@smoke")
    folder.report.write_text("<p>of the first</p>")
    folder.report_source.write_text(json.dumps({"object": gone}))
    said = store_says(capsys, layout, "store", "gc")
    assert "quick@smoke, of earlier plans: 3 objects" in said
    assert f"j3  {gone}" in said
    assert f"a report stays without its results: {folder.report}" in said
    assert "nothing to delete" in store_says(capsys, layout, "store", "gc", "--older-than", "30d")
    for path in layout.object(gone), layout.object(gone) / "artifact.json":
        os.utime(path, (1, 1))
    assert gone in store_says(capsys, layout, "store", "gc", "--older-than", "30d")
    assert layout.is_published(gone)
    store_says(capsys, layout, "store", "gc", "--delete")
    assert not layout.is_published(gone)


def test_records_of_an_older_release_are_roots_still(layout: StoreLayout) -> None:
    """All that had one name lay in one folder, and the history did not say what was complete."""
    full, smoke = plan_text("quick", None, 0, 0), plan_text("quick", "smoke", 0, 0)
    seed = plan_text("quick", None, 1, 0).replace('"chosen": {"seed": 1}', '"unknown": 0')
    folder = RunFolder.of(layout, "quick")
    for text in (full, seed, smoke):
        digest = keep_plan(folder, text)
        with folder.history.open("a") as out:
            out.write(json.dumps({"exit": 0, "plan": digest}) + "\n")
        for job in json.loads(text)["jobs"]:
            publish(layout, f"rollout/{job['key']}")
    folder.last_plan.write_text(smoke)
    assert not find_garbage(layout)
    run_once(layout, full)
    run_once(layout, plan_text("quick", "smoke", 0, 1))
    named = {f"rollout/{job['key']}" for text in (full, seed) for job in json.loads(text)["jobs"]}
    assert named.isdisjoint(find_garbage(layout).objects)


def test_a_history_that_was_cut_off_costs_one_line(layout: StoreLayout) -> None:
    folder = RunFolder.of(layout, "quick")
    run_once(layout, plan_text("quick", None, 0, 0))
    with folder.history.open("a") as out:
        out.write('{"began": 1.0, "compl')
    run_once(layout, plan_text("quick", None, 0, 1))
    assert [line["complete"] for line in read_history(folder)] == [True, True]


@pytest.mark.parametrize(
    ("variant", "label"),
    [
        (Variant(name="quick"), "quick"),
        (Variant(name="quick", scale="smoke"), "quick@smoke"),
        (Variant(name="quick", chosen={"seed": 1}), "quick@seed=1"),
        (Variant(name="quick", scale="smoke", chosen={"b": [1, 2], "a": 0.5}), None),
        (Variant(name="quick", chosen={"path": "../../etc"}), None),
        (Variant(name="quick", chosen={"text": "x" * 400}), None),
        (Variant(name="q" * 300), None),
        (Variant(name="quick", chosen={"a": "1,b=2"}), None),
    ],
)
def test_labels_are_folders_and_tell_variants_apart(variant: Variant, label: str | None) -> None:
    if label is not None:
        assert variant.label == label
    assert len(variant.label) < 200
    assert "/" not in variant.label
    other = Variant(name="quick", chosen={"a": 1, "b": 2})
    assert variant.label != other.label == "quick@a=1,b=2"


def test_runs_lists_and_names_choose(
    layout: StoreLayout, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, (scale, seed) in enumerate([(None, 0), (None, 1), ("smoke", 0)]):
        text = plan_text("quick", scale, seed, 0)
        run_once(layout, text, until="j0" if scale else None)
        folder = RunFolder.of_plan(layout, json.loads(text))
        os.utime(folder.state, (1000 + number, 1000 + number))
    listed = store_says(capsys, layout, "runs").splitlines()
    assert [line.split()[:2] for line in listed[1:]] == [
        ["quick@smoke", "unfinished"], ["quick@seed=1", "complete"], ["quick", "complete"]
    ]  # fmt: skip
    said = store_says(capsys, layout, "status", "quick")
    assert "quick@smoke: 1 of 4 jobs are done" in said
    assert "of quick this is quick@smoke, run last" in said
    assert "quick: 4 of 4" in store_says(capsys, layout, "status", "quick", "--scale", "full")
    said = store_says(capsys, layout, "status", "quick", "-p", "seed=1")
    assert said.startswith("quick@seed=1: 4 of 4")
    assert store_says(capsys, layout, "status", "quick@seed=1").startswith("quick@seed=1: 4 of 4")
    said = store_says(capsys, layout, "status", "quick", "--scale", "large")
    assert "no run of `quick` with --scale large; there are" in said
    assert "quick@seed=1: forgotten" in store_says(
        capsys, layout, "runs", "--forget", "quick@seed=1"
    )
    assert find_garbage(layout).objects


def test_a_history_cut_off_within_a_character_costs_one_line(layout: StoreLayout) -> None:
    """And a line ends with a newline alone: other ends of lines may stand in a name."""
    folder = RunFolder.of(layout, "quick")
    run_once(layout, plan_text("quick", None, 0, 0).replace("s.yaml", "s\\u2028.yaml"))
    with folder.history.open("ab") as out:
        out.write('{"spec": "é'.encode()[:-1])
    run_once(layout, plan_text("quick", None, 0, 1))
    assert [line["complete"] for line in read_history(folder)] == [True, True]


def test_a_run_begins_over_a_last_plan_that_is_no_text(layout: StoreLayout) -> None:
    text = plan_text("quick", None, 0, 0)
    run_once(layout, text)
    last = RunFolder.of(layout, "quick").last_plan
    last.write_bytes(b"\xff" + text.encode()[1:])
    run_once(layout, text)
    assert last.read_text() == text


@pytest.mark.parametrize("word", ["[]", '{"slurm": [1]}'])
def test_a_word_of_a_run_that_is_no_record_stops_gc_and_no_run(
    layout: StoreLayout, capsys: pytest.CaptureFixture[str], word: str
) -> None:
    text = plan_text("quick", None, 0, 0)
    run_once(layout, text)
    said = RunFolder.of(layout, "quick").in_use / "a.json"
    said.write_text(word)
    run_once(layout, text)
    assert f"{said} cannot be read" in store_says(capsys, layout, "store", "gc")


def test_a_list_of_runs_at_work_that_cannot_be_read_is_no_empty_one(
    layout: StoreLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their objects would go."""
    run_once(layout, plan_text("quick", None, 0, 0))
    folder = RunFolder.of(layout, "quick").in_use

    def refuse(listing: Callable[..., Any], path: Any = ".") -> Any:
        if str(path) == str(folder):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return listing(path)

    for name in ("scandir", "listdir"):
        monkeypatch.setattr(os, name, partial(refuse, getattr(os, name)))
    with pytest.raises(ValueError, match="in-use cannot be read"):
        find_garbage(layout)


def test_a_packed_plan_that_is_damaged_is_named(
    layout: StoreLayout, capsys: pytest.CaptureFixture[str]
) -> None:
    text = plan_text("quick", None, 0, 0)
    run_once(layout, text)
    kept = RunFolder.of(layout, "quick").kept_plan(keep_plan(RunFolder.of(layout, "quick"), text))
    kept.write_bytes(kept.read_bytes()[:10] + b"\xff" * 40)
    assert f"{kept} cannot be read" in store_says(capsys, layout, "store", "gc")
    assert "cannot be read" in store_says(capsys, layout, "diff", "quick@1", "quick")


def test_what_was_put_aside_comes_back_when_nobody_can_tell_who_needs_it(
    layout: StoreLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a file of a run that has just begun is stale on this node."""
    for edition in (0, 1):
        run_once(layout, plan_text("quick", None, 0, edition))
    garbage = find_garbage(layout)
    assert garbage.objects

    def fail(*_: Any) -> None:
        raise ValueError("a plan cannot be read")

    monkeypatch.setattr(gc, "find_roots", fail)
    with pytest.raises(ValueError, match="cannot be read"):
        collect(layout, garbage)
    assert all(map(layout.is_published, garbage.objects))


def test_runs_that_another_node_has_just_begun_are_asked_for_anew(
    layout: StoreLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first run of a variant makes a folder that this node need not know of yet."""
    run_once(layout, plan_text("quick", None, 0, 0))
    monkeypatch.setenv("AGENTC_VISIBLE_S", "60")
    asked: list[Path] = []
    monkeypatch.setattr(roots, "refresh", asked.append)
    find_garbage(layout)
    assert asked[:2] == [layout.root / "runs", layout.root / "runs" / "quick"]


def test_a_run_that_is_only_beginning_is_not_forgotten(
    layout: StoreLayout, capsys: pytest.CaptureFixture[str]
) -> None:
    """`gc` would know nothing of it any more."""
    text = plan_text("quick", None, 0, 0)
    run_once(layout, text)
    folder = RunFolder.of(layout, "quick")
    with plan_in_use(folder, keep_plan(folder, text)):
        assert "quick is at work" in store_says(capsys, layout, "runs", "--forget", "quick")
    assert folder.last_plan.is_file()
    assert "quick: forgotten" in store_says(capsys, layout, "runs", "--forget", "quick")

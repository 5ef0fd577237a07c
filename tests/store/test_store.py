"""`agentc store`: listing, verification against real damage, and garbage collection."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.patience import wait_for
from tiny_plan import TinyPlan

from agentc.cli import main
from agentc.run.past import keep_plan
from agentc.runtime.store.layout import StoreLayout
from agentc.runtime.store.object_lock import ObjectLock
from agentc.store.gc import COLLECTOR, StoreBusyError, collect, find_garbage
from agentc.store.objects import list_objects, verify_object
from agentc.store.paths import RunFolder
from agentc.store.run_history import plan_in_use


@pytest.fixture
def filled(plan: TinyPlan) -> TinyPlan:
    """A store with a checkpoint and a rollout of it."""
    plan.job("model", "checkpoint.py", kind="sft", produces="Checkpoint")
    plan.job("act", inputs={"model": ["model"]})
    assert plan.run("model").returncode == 0
    assert plan.run("act").returncode == 0
    return plan


def remember(plan: TinyPlan, name: str, *jobs: str) -> None:
    """As if a plan of only these jobs had been the last run of an experiment."""
    document = plan.document()
    document["jobs"] = [job for job in document["jobs"] if job["id"] in jobs]
    folder = plan.store / "runs" / name
    folder.mkdir(parents=True)
    (folder / "last-plan.json").write_text(json.dumps(document))


def store(plan: TinyPlan, *words: str) -> int:
    return main(["store", *words, "--store", str(plan.store)])


@pytest.mark.parametrize("width", [60, 80, 120])
def test_ls_fits_the_terminal(
    filled: TinyPlan,
    width: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("agentc.cli.store.terminal_width", lambda stream: width)
    assert store(filled, "ls") == 0
    shown = capsys.readouterr().out.splitlines()
    assert max(map(len, shown)) <= width, shown
    assert shown[0].startswith("OBJECT")
    assert shown[0].endswith("JOB")
    assert shown[1].startswith(filled.object("model"))
    assert shown[1].endswith("model")


def test_ls_shows_each_object(filled: TinyPlan, capsys: pytest.CaptureFixture[str]) -> None:
    assert store(filled, "ls") == 0
    shown = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in shown] == [filled.object("model"), filled.object("act")]
    assert "Checkpoint" in shown[0]
    assert store(filled, "ls", "--json", "--kind", "sft") == 0
    (line,) = capsys.readouterr().out.splitlines()
    described = json.loads(line)
    assert described["id"] == "model"
    total = sum(p.stat().st_size for p in (filled.store / "objects").rglob("*") if p.is_file())
    sizes = [stored.size for stored in list_objects(StoreLayout(filled.store))[0]]
    assert sum(sizes) == total
    assert described["size"] in sizes


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (lambda d: flip(d / "data" / "model.safetensors"), "data/model.safetensors: the content"),
        (lambda d: (d / "data" / "config.json").unlink(), "data/config.json: the file is missing"),
        (lambda d: (d / "data" / "new").write_text("x"), "data/new: the manifest does not know"),
        (lambda d: (d / "artifact.json").write_text("{"), "artifact.json cannot be read"),
        (lambda d: (d / "artifact.json").write_text("{}"), "artifact.json is no manifest"),
        (lambda d: flip(d / "logs" / "log.txt"), "logs/log.txt: the content was changed"),
    ],
)
def test_verify_finds_damage(
    filled: TinyPlan,
    capsys: pytest.CaptureFixture[str],
    damage: Callable[[Path], object],
    expected: str,
) -> None:
    assert store(filled, "verify") == 0
    assert "2 objects verified, none damaged" in capsys.readouterr().out
    folder = filled.store / "objects" / filled.object("model")
    (folder / "logs" / "log.txt").write_text("x") if "log.txt" in expected else None
    damage(folder)
    assert store(filled, "verify") == 4
    shown = capsys.readouterr().err
    assert expected in shown
    assert filled.object("model") in shown
    assert "damaged: " + filled.object("act") not in shown


def test_object_under_a_wrong_key_is_damage(filled: TinyPlan) -> None:
    wrong = filled.store / "objects" / "sft" / ("0" * 32)
    shutil.copytree(filled.store / "objects" / filled.object("model"), wrong)
    found, _ = list_objects(StoreLayout(filled.store))
    problems = [problem for stored in found for problem in verify_object(stored)]
    assert [problem.object for problem in problems] == ["sft/" + "0" * 32]


def test_verify_of_named_objects(filled: TinyPlan, capsys: pytest.CaptureFixture[str]) -> None:
    assert store(filled, "verify", filled.object("act")) == 0
    assert store(filled, "verify", "sft/nothing") == 5
    assert "no such object" in capsys.readouterr().err


def test_gc_keeps_what_a_last_plan_names(
    filled: TinyPlan, capsys: pytest.CaptureFixture[str]
) -> None:
    remember(filled, "tiny", "model")
    assert store(filled, "gc") == 0
    shown = capsys.readouterr().out
    assert filled.object("act") in shown
    assert filled.object("model") not in shown
    assert filled.published("act"), "without --delete nothing is deleted"
    assert store(filled, "gc", "--delete") == 0
    assert not (filled.store / "objects" / filled.object("act")).exists()
    assert filled.published("model")
    assert not (filled.store / "trash").exists()
    assert store(filled, "gc") == 0
    assert "nothing to delete" in capsys.readouterr().out


def test_two_experiments_keep_their_common_object(filled: TinyPlan) -> None:
    remember(filled, "one", "model", "act")
    remember(filled, "two", "model")
    assert not find_garbage(StoreLayout(filled.store))


def test_unfinished_work_of_a_plan_is_kept(filled: TinyPlan) -> None:
    filled.job("later", rows=1, exit=1)
    filled.run("later")
    remember(filled, "tiny", "model", "act")
    assert set(find_garbage(StoreLayout(filled.store)).staging) == {filled.object("later")}
    (filled.store / "runs" / "tiny" / "last-plan.json").write_text(json.dumps(filled.document()))
    assert not find_garbage(StoreLayout(filled.store)).staging


def test_gc_keeps_what_a_job_at_work_reads_and_deletes_the_rest(filled: TinyPlan) -> None:
    """A wrapper that plain Snakemake started: no run is registered."""
    layout = StoreLayout(filled.store)
    filled.job("other", rows=1)
    assert filled.run("other").returncode == 0
    filled.job("slow", rows=50, delay=0.1, inputs={"model": ["model"]})
    before = find_garbage(layout)
    assert set(before.objects) == {filled.object(job) for job in ("model", "act", "other")}
    process = filled.start("slow")
    wait_for(lambda: filled.status("slow").get("state") == "running")
    assert set(find_garbage(layout).objects) == {filled.object("act"), filled.object("other")}
    # What was garbage a moment ago is asked about again.
    assert collect(layout, before) == (filled.object("model"),)
    assert filled.published("model")
    assert not filled.published("act")
    assert not (filled.store / "trash").exists()
    assert filled.staging("slow").is_dir()
    process.terminate()
    process.communicate()


def test_gc_removes_what_servers_of_yesterday_left(filled: TinyPlan) -> None:
    layout = StoreLayout(filled.store)
    own = layout.root / "servers" / str(os.getuid())
    for name, age in (("old", 2 * 86400.0), ("at-work", 0.0)):
        copy = own / name / "1"
        copy.mkdir(parents=True)
        (own / name / "token").write_text("x")
        (copy / "beat").write_text("")
        long_ago = time.time() - 2 * 86400.0
        for path in (own / name / "token", copy, own / name):
            os.utime(path, (long_ago, long_ago))
        os.utime(copy / "beat", (time.time() - age,) * 2)
    collect(layout, find_garbage(layout))
    assert [path.name for path in own.iterdir()] == ["at-work"]


def test_gc_keeps_what_a_run_that_goes_on_has_and_will_use(filled: TinyPlan) -> None:
    """Its plan is not the last one of its experiment any more, and no job of it is at work."""
    layout = StoreLayout(filled.store)
    folder = RunFolder.of(layout, "tiny")
    remember(filled, "tiny", "model")
    garbage = find_garbage(layout)
    assert set(garbage.objects) == {filled.object("act")}
    with plan_in_use(folder, keep_plan(folder, json.dumps(filled.document()))):
        assert not find_garbage(layout)
        assert collect(layout, garbage) == (filled.object("act"),)
        assert filled.published("act")
    assert collect(layout, garbage) == ()
    assert not filled.published("act")


def test_record_of_a_killed_run_keeps_nothing(filled: TinyPlan) -> None:
    layout = StoreLayout(filled.store)
    folder = RunFolder.of(layout, "tiny")
    remember(filled, "tiny", "model")
    filled.job("later", kind="pair", inputs={"x": ["act"]})  # it was killed before that
    digest = keep_plan(folder, json.dumps(filled.document()))
    with plan_in_use(folder, digest) as run:
        record = json.loads(run.read_text())
        run.write_text(json.dumps({**record, "since": "1"}))  # the number of another by now
        assert set(find_garbage(layout).objects) == {filled.object("act")}
        # About one on another machine nothing is known, for a while.
        run.write_text(json.dumps({**record, "boot": "another"}))
        assert not find_garbage(layout)
        os.utime(run, (0, 0))
        assert set(find_garbage(layout).objects) == {filled.object("act")}


def test_one_collects_at_a_time(filled: TinyPlan) -> None:
    layout = StoreLayout(filled.store)
    claim = ObjectLock(layout, COLLECTOR)
    assert claim.attempt() is None
    with pytest.raises(StoreBusyError, match="by another user"):
        collect(layout, find_garbage(layout))
    claim.release()


def test_gc_stops_at_a_plan_it_cannot_read(
    filled: TinyPlan, capsys: pytest.CaptureFixture[str]
) -> None:
    remember(filled, "tiny", "model")
    (filled.store / "runs" / "tiny" / "last-plan.json").write_text("{")
    assert store(filled, "gc", "--delete") == 4
    assert "nothing was deleted" in capsys.readouterr().err
    assert filled.published("act")


def test_unused_software_environments_go_when_asked(
    plan: TinyPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AGENTC_SOFTWARE")
    plan.job("act")
    assert plan.run("act").returncode == 0
    remember(plan, "tiny", "act")
    layout = StoreLayout(plan.store)
    assert not find_garbage(layout, software=True).software
    old = plan.store / "software" / ("a" * 16)
    old.mkdir()
    assert set(find_garbage(layout, software=True).software) == {"a" * 16}
    assert not find_garbage(layout).software


def test_store_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["store", "ls", "--store", str(tmp_path / "none")]) == 5
    assert "there is no store at" in capsys.readouterr().err

"""A killed training job continues from its newest whole checkpoint and ends with the same bits."""

from __future__ import annotations

import os
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from tests.support.patience import PATIENCE_S
from tests.torch.trl.jobs import (
    difference,
    pairs,
    run_here,
    small_model,
    start,
    steps,
    trainer_job,
    trajectories,
    wait_for_step,
    write_rows,
)
from tests.torch.trl.programs import run_program

from agentc_backends.trainers.common.checkpoints import newest_complete

SETTINGS: dict[str, Any] = {"epochs": 6, "save_every": 3, "global_batch": 8, "micro_batch": 2}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_model(tmp_path_factory.mktemp("model"))


def inputs_of(kind: str, model: Path, root: Path) -> dict[str, list[Path]]:
    if kind == "sft":
        rows = write_rows(root / "rows", "trajectories.jsonl", trajectories(36))
    else:
        rows = write_rows(root / "rows", "pairs.jsonl", pairs(36))
    return {"model": [model], "data": [rows]}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "extra", "kills"),
    [
        pytest.param("sft", {}, (7, 20), marks=pytest.mark.long),
        ("dpo", {}, (7,)),
        ("sft", {"lora": {"rank": 4, "dropout": 0.2}, "save_every": None}, (7,)),  # by time
    ],
)
def test_kill_and_rerun_end_with_the_bits_of_an_undisturbed_run(
    kind: str, extra: dict[str, Any], kills: tuple[int, ...], model: Path, tmp_path: Path
) -> None:
    inputs = inputs_of(kind, model, tmp_path)
    whole = tmp_path / "whole"
    run_here(trainer_job(whole, kind, inputs, **{**SETTINGS, **extra}))
    cut = tmp_path / "cut"
    job = trainer_job(cut, kind, inputs, **{**SETTINGS, **extra})
    for step in kills:
        process = start(job)
        wait_for_step(cut, step, process)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        assert newest_complete(cut / "work", "checkpoint-*") is not None
    status, out, err = run_program(job)
    assert status == 0, out + err
    assert difference(whole, cut) == 0.0
    untimed = [
        [{k: v for k, v in line.items() if k != "tokens_per_s"} for line in steps(root)]
        for root in (whole, cut)
    ]
    assert [line["step"] for line in untimed[1]] == list(range(1, 31))
    for a, b in zip(*untimed, strict=True):
        assert a == pytest.approx(b)
    assert len(list((cut / "work").glob("checkpoint-*"))) <= 2


@pytest.mark.slow
def test_killing_the_launcher_ends_its_workers(model: Path, tmp_path: Path) -> None:
    """They live in sessions of their own, out of reach of a signal to the job's group."""
    inputs = inputs_of("sft", model, tmp_path)
    root = tmp_path / "job"
    job = trainer_job(root, "sft", inputs, **{**SETTINGS, "processes": 2, "epochs": 500})
    process = start(job)
    wait_for_step(root, 1, process)
    workers = _processes_with(str(job))
    assert len(workers) == 3
    os.kill(process.pid, signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE_S
    while _processes_with(str(job)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert _processes_with(str(job)) == []


def _processes_with(word: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().decode().split("\0")
            state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if word in words and state != "Z":
            found.append(int(entry.name))
    return found


def test_an_unfinished_checkpoint_is_removed_and_the_one_before_it_used(
    model: Path, tmp_path: Path
) -> None:
    inputs = inputs_of("sft", model, tmp_path)
    whole = tmp_path / "whole"
    run_here(trainer_job(whole, "sft", inputs, **SETTINGS))
    work = whole / "work"
    newest = newest_complete(work, "checkpoint-*")
    assert newest is not None
    assert newest.name == "checkpoint-27"
    # The next one was being written when the job was killed.
    shutil.copytree(newest, work / "checkpoint-30")
    (work / "checkpoint-30" / "complete").unlink()
    (work / "checkpoint-30" / "optimizer.pt").write_bytes(b"cut")
    cut = tmp_path / "cut"
    job = trainer_job(cut, "sft", inputs, **SETTINGS)
    shutil.copytree(work, cut / "work", dirs_exist_ok=True)
    run_here(job)
    assert not (cut / "work" / "checkpoint-30").exists()
    assert [line["step"] for line in steps(cut)] == [28, 29, 30]
    assert difference(whole, cut) == 0.0


def test_a_rerun_may_be_placed_differently(model: Path, tmp_path: Path) -> None:
    """Placement is no part of a key, so an interrupted job can come back with another one."""
    inputs = inputs_of("dpo", model, tmp_path)
    whole = tmp_path / "whole"
    run_here(trainer_job(whole, "dpo", inputs, **SETTINGS))
    moved = tmp_path / "moved"
    job = trainer_job(moved, "dpo", inputs, **{**SETTINGS, "micro_batch": 8})
    shutil.copytree(whole / "work", moved / "work", dirs_exist_ok=True)
    run_here(job)
    assert [line["step"] for line in steps(moved)] == [28, 29, 30]
    assert difference(whole, moved) < 2e-4


@pytest.mark.slow
@pytest.mark.long
def test_processes_that_resume_within_a_later_epoch_go_on_with_its_rows(
    model: Path, tmp_path: Path
) -> None:
    inputs = inputs_of("sft", model, tmp_path)
    settings = {**SETTINGS, "epochs": 2, "save_every": 8, "processes": 2}
    whole, moved = tmp_path / "whole", tmp_path / "moved"
    status, out, err = run_program(trainer_job(whole, "sft", inputs, **settings))
    assert status == 0, out + err
    job = trainer_job(moved, "sft", inputs, **settings)
    shutil.copytree(whole / "work", moved / "work", dirs_exist_ok=True)
    status, out, err = run_program(job)
    assert status == 0, out + err
    assert [line["step"] for line in steps(moved)] == [9, 10]
    assert difference(whole, moved) == 0.0

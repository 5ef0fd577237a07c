"""The prologue: a job that got less than was asked for says so before its work. Variables are as
SLURM 22.05 sets them (recorded in a job of a real cluster)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from tiny_plan import TinyPlan

from agentc.run.observe import Observer
from agentc.runtime.machine.allocation import (
    assert_granted,
    clock_trouble,
    memory_limit,
    read_request,
    shortfalls,
    time_left,
)
from agentc.runtime.store.layout import StoreLayout

STEP = {
    "SLURM_JOB_ID": "2",
    "SLURM_JOB_NUM_NODES": "1",
    "SLURM_GPUS_ON_NODE": "2",
    "SLURM_JOB_GPUS": "0,1",
    "CUDA_VISIBLE_DEVICES": "0,1",
    "SLURM_MEM_PER_NODE": "500",
    "SLURM_CPUS_ON_NODE": "4",
    "SLURM_JOB_END_TIME": "10000",
}


def missing(
    asked: str, environ: Mapping[str, str], gpus: tuple[str, ...] = (), now: float = 6400.0
) -> list[str]:
    return shortfalls(read_request(asked), environ, lambda: list(gpus), now)


@pytest.fixture(autouse=True)
def _no_slurm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of these jobs no SLURM of this machine knows anything."""
    monkeypatch.setenv("PATH", "")


def test_what_was_asked_for_is_there() -> None:
    assert missing("gpu=2,mem_mb=500,runtime=60,nodes=1", STEP) == []
    assert missing("gres=gpu:a100:2", STEP) == []
    assert missing("mem_mb=<TBD>", STEP) == [], "what Snakemake does not know yet is not checked"
    assert missing("", {}) == []


@pytest.mark.parametrize(
    ("asked", "changes", "words"),
    [
        ("gpu=4", {}, ["4 GPUs were asked for, and it sees 2", "SLURM_GPUS_ON_NODE"]),
        ("gpu=2", {"CUDA_VISIBLE_DEVICES": "0"}, ["sees 1", "CUDA_VISIBLE_DEVICES=0"]),
        ("gres=gpu:a100:4", {}, ["4 GPUs", "sees 2"]),
        ("mem_mb=501", {}, ["501 MiB", "has 500", "SLURM_MEM_PER_NODE"]),
        ("runtime=90", {}, ["90 minutes", "ends in 60", "SLURM_JOB_END_TIME"]),
        ("nodes=2,gpu=4", {}, ["2 nodes were asked for, and it has 1"]),
    ],
)
def test_what_is_missing_is_named(asked: str, changes: dict[str, str], words: list[str]) -> None:
    (sentence,) = missing(asked, {**STEP, **changes})
    for word in words:
        assert word in sentence


BEGAN = {**STEP, "SLURM_JOB_START_TIME": "6400"}


@pytest.mark.parametrize("now", [6400.0 + 600, 6400.0 - 600])
def test_node_with_another_clock_gets_what_it_was_given(now: float) -> None:
    assert missing("runtime=60", BEGAN, now=now) == []
    (sentence,) = missing("runtime=90", BEGAN, now=now)
    assert "90 minutes were asked for, and it was given 60" in sentence
    left = time_left(BEGAN, now)
    assert left is not None
    assert left[0] <= 3600, "a clock that is behind promises nothing"


def test_clocks_that_disagree_are_named() -> None:
    for now, words in ((7000.0, "the job began 10 minutes ago"), (5800.0, "began 600 s from now")):
        said = clock_trouble(BEGAN, now)
        assert said.startswith(f"the clock of {os.uname().nodename} and that of SLURM's controller")
        assert words in said
    for now in (6390.0, 6400.0, 6460.0):
        assert clock_trouble(BEGAN, now) == ""
    assert clock_trouble({}, 0.0) == clock_trouble(STEP, 0.0) == ""


def test_a_run_inside_of_an_allocation_is_no_sign_of_another_clock() -> None:
    now = time.time()
    began = {**BEGAN, "SLURM_JOB_START_TIME": f"{now - 2500:.0f}"}
    began["SLURM_JOB_END_TIME"] = f"{now + 2500:.0f}"
    said: list[str] = []
    assert_granted({}, began, list, said.append)
    assert said == []
    assert_granted({"runtime": "60"}, began, list, said.append)
    assert "disagree" in said[0]


@pytest.mark.parametrize(
    ("shown", "left"),
    [
        ("StartTime=2026-11-28T08:00:00 EndTime=2026-11-28T09:00:00", 3600.0),
        ("StartTime=Unknown EndTime=2026-11-28T09:00:00", 3600.0),
        ("StartTime=2026-11-28T08:00:00 EndTime=Unknown", None),
        ("JobId=7", None),
        (None, None),
    ],
)
def test_an_older_slurm_shows_the_end_of_a_job(
    shown: str | None, left: float | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It sets no SLURM_JOB_END_TIME; a job without a limit has no end."""
    if shown is not None:
        scontrol = tmp_path / "scontrol"
        scontrol.write_text(f"#!/bin/sh\n[ $4 = 7 ] && echo {shown}\n")
        scontrol.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    now = time.mktime(time.strptime("2026-11-28T08:00:00", "%Y-%m-%dT%H:%M:%S"))
    found = time_left({"SLURM_JOB_ID": "7"}, now)
    assert (None if found is None else found[0]) == left


def test_slurm_gave_no_gpu_at_all() -> None:
    bare = {name: value for name, value in STEP.items() if "GPU" not in name and "CUDA" not in name}
    (sentence,) = missing("gpu=1", bare)
    assert "sees 0" in sentence


def test_gpus_are_counted_on_each_node() -> None:
    two = {**STEP, "SLURM_JOB_NUM_NODES": "2"}
    assert missing("gpu=4,nodes=2", two) == []
    assert "each node" in missing("gpu=6,nodes=2", two)[0]


def test_on_a_machine_of_ones_own() -> None:
    assert missing("gpu=1", {}) == [], "nobody knows of GPUs: nothing is concluded"
    assert missing("gpu=1", {"CUDA_VISIBLE_DEVICES": ""}) == [], "they are hidden on purpose"
    assert missing("gpu=2", {}, gpus=("A100", "A100")) == []
    assert "A100" in missing("gpu=2", {}, gpus=("A100",))[0]
    assert missing("runtime=99999", {}) == []
    there = memory_limit({})
    assert there is not None
    assert missing(f"mem_mb={int(there[0])}", {}) == []
    assert "memory" in missing(f"mem_mb={int(there[0]) * 2}", {})[0]


def test_a_job_that_got_less_does_not_start(tmp_path: Path) -> None:
    tiny = TinyPlan(tmp_path)
    tiny.job("rows")
    tiny.write()
    environ = {**os.environ, **STEP, "AGENTC_SOFTWARE": str(tmp_path / "software")}
    environ["SLURM_JOB_END_TIME"] = str(int(time.time()) + 3600)
    words = [sys.executable, "-m", "agentc.runtime.job", "--plan", str(tiny.path)]
    words += ["--store", str(tiny.store), "--job", "rows", "--asked", "gpu=4,mem_mb=500"]
    done = subprocess.run(words, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "4 GPUs were asked for, and it sees 2" in done.stderr
    assert "agentc plan SPEC --profile" in done.stderr
    status = json.loads((tiny.store / "staging" / tiny.object("rows") / "status.json").read_text())
    assert status["state"] == "failed"
    assert "sees 2" in status["message"]
    assert "warning" not in status
    assert not (tiny.store / "objects" / tiny.object("rows")).exists()

    environ["AGENTC_PROLOGUE"] = "warn"
    done = subprocess.run(words, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "sees 2" in done.stderr


def test_a_clock_that_is_wrong_is_told_to_the_run(tmp_path: Path) -> None:
    """SLURM's own log of a job is removed by the plugin where the job succeeds."""
    tiny = TinyPlan(tmp_path)
    tiny.job("rows", exit=1)
    tiny.write()
    began = int(time.time()) - 1200
    environ = {**os.environ, **STEP, "AGENTC_SOFTWARE": str(tmp_path / "software")}
    environ |= {"SLURM_JOB_START_TIME": str(began), "SLURM_JOB_END_TIME": str(began + 7200)}
    words = [sys.executable, "-m", "agentc.runtime.job", "--plan", str(tiny.path)]
    words += ["--store", str(tiny.store), "--job", "rows", "--asked", "runtime=120"]
    subprocess.run(words, env=environ, capture_output=True, text=True, check=False)
    observer = Observer(StoreLayout(tiny.store), tiny.jobs, since=0.0)
    (seen,) = observer.observe()
    assert seen.state == "failed"
    (said,) = observer.warnings()
    assert said.startswith(f"rows: the clock of {os.uname().nodename} and that of SLURM's")

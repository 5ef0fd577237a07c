"""kill -9 in each stage of SWEET-RL's chain, one after the other in one store: what comes out in
the end is what an undisturbed run makes, to the byte."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from kills import assert_clean, dice, digests
from smoke import agentc, require_software
from tests.end_to_end.test_hidden_texts import SPEC
from tests.support.patience import PATIENCE_S, wait_for
from tiny_plan import drivers_of, processes_of

pytestmark = [pytest.mark.slow, pytest.mark.long]

# One request at a time: a server's batches may show in the last digit.
ONE = "defaults: {concurrency: 1}\nstages:\n"
CHOSEN = """\
  told: {kind: privileged, split: validation, limit: 3}
  chosen: {kind: evaluate, server: own, policy: sweet, split: validation, limit: 3, candidates: 2,
           critic: critic, reference: tiny, privileged: told,
           decode: {temperature: 1.0, max_tokens: 16}}
"""
JOBS = (
    *("hidden", "critic", "turns", "ranked:reference", "ranked", "better", "sweet"),
    *("chosen:episodes", "chosen"),
)


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "spec.yaml"
    text = SPEC.replace("stages:\n", ONE).replace("  gain:", CHOSEN + "  gain:")
    path.write_text(text, encoding="utf-8")
    return path


def test_a_kill_in_each_stage_changes_nothing(spec: Path, tmp_path: Path) -> None:
    require_software("trl.critic")
    calm, store, chance = tmp_path / "calm", tmp_path / "store", dice()
    agentc("run", spec, "--store", calm, "--plain")
    listed = json.loads(agentc("plan", spec, "--store", calm, "--json"))["jobs"]
    objects = {job["id"]: job["object"] for job in listed}
    for job in JOBS:
        _run_and_kill(spec, store, objects[job], chance)
        assert not (store / "objects" / objects[job]).exists(), f"{job} was over first"
    agentc("run", spec, "--store", store, "--plain")
    assert_clean(store)
    assert digests(store) == digests(calm)


def _run_and_kill(spec: Path, store: Path, name: str, chance: random.Random) -> None:
    """Run until the program of an object is at work, and kill that at a random moment."""
    command = Path(sys.executable).with_name("agentc")
    argv = [command, "run", spec, "--store", store, "--plain"]
    running = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        wait_for(lambda: _program(store, name) or running.poll() is not None)
        pid = _program(store, name)
        assert pid, running.communicate()[0]
        work = store / "staging" / name / "work"
        until = time.monotonic() + chance.uniform(0.0, 2.0)
        while time.monotonic() < until and not _nearly_over(work):
            time.sleep(0.005)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        running.communicate(timeout=PATIENCE_S)
    finally:
        running.kill()
    wait_for(lambda: not processes_of(store) and not drivers_of(store))


def _program(store: Path, name: str) -> int | None:
    """The job's own process, and not its servers."""
    place = str(store / "staging" / name / "job.json")
    found = [pid for pid, line in processes_of(store).items() if line.rstrip().endswith(place)]
    return min(found, default=None)


def _nearly_over(work: Path) -> bool:
    """Whether something of it is done: short jobs are over soon after."""
    return any(path.stat().st_size for path in work.glob("*") if path.is_file())

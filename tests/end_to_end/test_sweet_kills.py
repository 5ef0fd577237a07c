"""kill -9 in each stage of SWEET-RL's tiny spec, at its smoke scale and in one store: what comes
out in the end is what an undisturbed run makes, to the byte."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from kills import assert_clean, dice, digests
from smoke import agentc, require_software
from tests.support.patience import PATIENCE_S
from tiny_plan import processes_of

pytestmark = [pytest.mark.slow, pytest.mark.long]

WANTED = ("evaluate_sweet", "ranked_by_head")
"""The method, and the other kind of critic; further arms are the same programs."""
TAKEN_OVER = {"dialogues", "told_dialogues", "base", "start", "critic_head"}
"""Of these the undisturbed run's are used: their programs are those of ETO, and of `critic`."""
KILLED = {
    *("hidden", "collect", "prefs", "turns", "critic", "ranked:reference", "ranked", "pairs"),
    *("sweet", "evaluate_sweet:rollout", "evaluate_sweet", "ranked_by_head"),
}


def test_a_kill_in_each_stage_changes_nothing(repository: Path, tmp_path: Path) -> None:
    require_software("trl.critic")
    calm, store, chance = tmp_path / "calm", tmp_path / "store", dice()
    spec = repository / "specs" / "sweet_rl" / "tiny.yaml"
    words = [str(word) for word in ("run", spec, "--scale", "smoke", "--plain")]
    for stage in WANTED:
        agentc(*words, "--store", calm, "--until", stage)
    jobs = manifests(calm)
    for name, made in jobs.items():
        if made["id"] in TAKEN_OVER:
            shutil.copytree(calm / "objects" / name, store / "objects" / name)
    moments = {
        name: chance.uniform(0.0, made["program_s"])
        for name, made in sorted(jobs.items())
        if made["id"] in KILLED
    }
    assert len(moments) == len(KILLED)
    for stage in WANTED:
        argv = [*words, "--keep-going", "--store", str(store), "--until", stage]
        while not run_and_kill(argv, store, moments):
            pass
    assert_clean(store)
    again = manifests(store)
    assert {made["id"] for made in again.values() if made["attempts"] > 1} >= KILLED
    assert digests(store) == digests(calm)


def manifests(store: Path) -> dict[str, Any]:
    """Of all jobs, by their objects."""
    files = (store / "objects").glob("*/*/artifact.json")
    found = {f"{file.parts[-3]}/{file.parts[-2]}": json.loads(file.read_text()) for file in files}
    return {name: made for name, made in found.items() if "program_s" in made}


def run_and_kill(words: list[str], store: Path, moments: dict[str, float]) -> bool:
    """Run, and kill the program of each object that is named, so many seconds after it began; it
    is named no more then. Whether the run came to its end, and none of them was over first."""
    argv = [str(Path(sys.executable).with_name("agentc")), *words]
    began: dict[str, float] = {}
    hit = set()
    with (store / "said.txt").open("w+") as said:
        running = subprocess.Popen(argv, stdout=said, stderr=subprocess.STDOUT)
        try:
            while running.poll() is None:
                time.sleep(0.01)
                for name in moments.keys() - hit:
                    if name not in began and (store / "staging" / name / "job.json").exists():
                        began[name] = time.monotonic()
                    if name in began and time.monotonic() > began[name] + moments[name]:
                        hit |= {name} if kill(store, name) else set()
            running.wait(PATIENCE_S)
        finally:
            running.kill()
        said.seek(0)
        early = [name for name in began if (store / "objects" / name).exists()]
        assert (running.returncode == 0) == (began.keys() <= set(early)), said.read()
    for name in began:
        if name not in early:
            del moments[name]
            continue
        # Once more, and sooner.
        moments[name] /= 2
        shutil.rmtree(store / "objects" / name)
        shutil.rmtree(store / "objects" / "session", ignore_errors=True)
    return running.returncode == 0 and not early


def kill(store: Path, name: str) -> bool:
    """Kill the program of a job, and not its servers; False where it is not there."""
    place = str(store / "staging" / name / "job.json")
    found = [pid for pid, line in processes_of(store).items() if line.rstrip().endswith(place)]
    with suppress(ProcessLookupError, ValueError):
        os.kill(min(found), signal.SIGKILL)
        return True
    return False

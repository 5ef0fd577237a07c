"""kill -9 of each kind of process, at random moments of a whole ETO run with its model server."""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from smoke import Smoke, starts
from tiny_plan import drivers_of, processes_of, wait_for

from agentc.runtime.layout import StoreLayout
from agentc.store.objects import list_objects, verify_object

VICTIMS = {
    "agentc run": "agentc run ",
    "Snakemake": "-m snakemake",
    "job wrapper": "agentc.runtime.job",
    "model server": "transformers_server.job_serve",
    "environment server": "textcraft.job_serve",
    "trainer": "trl_trainers.job_",
    "rollout": "rollout_react.job_rollout",
}
"""What may be killed, by a part of its command line."""


def start(spec: Path, store: Path) -> subprocess.Popen[bytes]:
    agentc = str(Path(sys.executable).with_name("agentc"))
    return subprocess.Popen(
        [agentc, "run", str(spec), "--store", str(store), "--plain"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def alive(store: Path, part: str) -> list[int]:
    """Processes of a run whose command line has `part`."""
    found = []
    for pid in {*drivers_of(store), *processes_of(store)}:
        with contextlib.suppress(OSError):
            line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
            if part in line:
                found.append(pid)
    return sorted(found)


def digests(store: Path) -> dict[str, str]:
    """Digest of each file that the jobs made, the report's aside: it tells times."""
    return {
        str(path.relative_to(store / "objects")): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted((store / "objects").glob("*/*/data/**/*"))
        if path.is_file() and path.relative_to(store / "objects").parts[0] != "report"
    }


def assert_clean(store: Path) -> None:
    wait_for(lambda: not processes_of(store) and not drivers_of(store), timeout=30)
    found, problems = list_objects(StoreLayout(store))
    assert problems == []
    assert [problem for stored in found for problem in verify_object(stored)] == []


@pytest.mark.slow
@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.long)])
def test_kills_change_nothing(smoke: Smoke, tmp_path: Path, kills: int) -> None:
    # With servers for environments too: that is no part of a key.
    spec, whole = tmp_path / "served.yaml", smoke.seconds
    text = smoke.spec.read_text(encoding="utf-8")
    assert text.count("\ndefaults:\n") == 1
    text = text.replace("\ndefaults:\n", "\ndefaults:\n  environment_at: server\n")
    spec.write_text(text, encoding="utf-8")
    expected = digests(smoke.store)

    seed = int(os.environ.get("AGENTC_KILL_SEED", "1"))
    chance = random.Random(seed)
    killed: Counter[str] = Counter()
    store, round_ = tmp_path / "killed-0", 0
    finished: dict[str, str] = {}
    while sum(killed.values()) < kills:
        victim = chance.choice(sorted(VICTIMS))
        process = start(spec, store)
        time.sleep(chance.uniform(0.0, whole / 8))
        while process.poll() is None and not (pids := alive(store, VICTIMS[victim])):
            time.sleep(0.02)
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(chance.choice(pids), signal.SIGKILL)
                killed[victim] += 1
            process.wait(timeout=900)
        assert_clean(store)
        now = starts(store)
        assert {name: now.get(name) for name in finished} == finished, f"after {victim}: run again"
        finished = now
        if digests(store).keys() == expected.keys():
            # This run is through: all was compared but its content; go on with a new one.
            assert digests(store) == expected
            round_ += 1
            store, finished = tmp_path / f"killed-{round_}", {}
    assert start(spec, store).wait(timeout=900) == 0
    assert_clean(store)
    now = starts(store)
    assert {name: now.get(name) for name in finished} == finished
    assert digests(store) == expected
    print(f"seed {seed}, undisturbed {whole:.0f} s, killed: {dict(killed)}, {round_ + 1} runs")

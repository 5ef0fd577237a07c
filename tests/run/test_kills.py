"""Kills and signals: whichever process of a job or of a run is hit, while it starts, runs or
publishes, nothing is left alive, the store is whole, and the next run completes without repeating
finished work. `AGENTC_KILLS` and `AGENTC_KILL_SEED` say how often and which way at random."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Literal

import pytest
from kills import KINDS, assert_clean, cut_off, dice, digests, kills_wanted
from tests.support.patience import PATIENCE_S, wait_for
from tiny_plan import TinyPlan, drivers_of, processes_of

from agentc.runtime.machine.process import parent_of

Level = Literal["job", "child", "run"]
"""The wrapper of one job, that of a parent that may die, or `agentc run` of the whole plan."""
KILL, TERM, INT, HUP = signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP
OF_JOBS = ("wrapper", "watchdog", "program", "model server")


@pytest.fixture
def chain(plan: TinyPlan) -> TinyPlan:
    """A model, a rollout on a forking server, a second rollout, something over both. What forks
    outlives its parent."""
    plan.job("model", "checkpoint.py", kind="sft", produces="Checkpoint")
    lease = plan.lease(arguments=["--fork", str(plan.outlived)])
    for name in ("left", "right"):
        plan.job(
            name, inputs={"model": ["model"]}, leases=[lease], call=True, rows=20, delay=0.05,
            children=True, say=name,
        )  # fmt: skip
    plan.session("both", "left", "right")
    plan.job("join", inputs={"rollouts": ["left", "right"]}, kind="pair", rows=10, delay=0.05)
    return plan


def start(plan: TinyPlan, level: Level = "run") -> subprocess.Popen[bytes]:
    argv = plan.run_all_argv() if level == "run" else plan.argv("left")
    if level == "child":
        argv = [sys.executable, "-c", "import subprocess, sys; subprocess.run(sys.argv[1:])", *argv]
    plan.write()
    with (plan.folder / "said.txt").open("w+b") as said:
        return subprocess.Popen(argv, stdout=said, stderr=said)


def complete(plan: TinyPlan, level: Level) -> None:
    done = plan.run_all() if level == "run" else plan.run("left")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("level", "victim", "number", "code", "words"),
    [
        pytest.param("job", "wrapper", KILL, -9, "", marks=pytest.mark.slow),
        ("job", "wrapper", TERM, 143, "interrupted by SIGTERM"),
        pytest.param("job", "program", KILL, 1, "was killed by signal 9", marks=pytest.mark.slow),
        pytest.param("job", "server", KILL, 1, "was killed by signal 9", marks=pytest.mark.slow),
        ("child", "parent", KILL, -9, ""),
        pytest.param("run", "agentc run", KILL, -9, "", marks=pytest.mark.slow),
        pytest.param("run", "snakemake", KILL, 3, "", marks=pytest.mark.slow),
        pytest.param("run", "agentc run", INT, 130, "", marks=pytest.mark.slow),
        pytest.param("run", "agentc run", TERM, 143, "", marks=pytest.mark.slow),
        pytest.param("run", "agentc run", HUP, 129, "", marks=pytest.mark.slow),
    ],
)
def test_nothing_is_left_and_the_next_run_completes(
    chain: TinyPlan, level: Level, victim: str, number: int, code: int, words: str
) -> None:
    if level != "run":
        assert chain.run("model").returncode == 0
    process = start(chain, level)
    wait_for(lambda: chain.status("left").get("state") == "running")
    script = {"program": "rows.py", "server": "server.py"}.get(victim, "")
    pid = process.pid
    if victim == "snakemake":
        pid = parent_of(chain.status("left")["pid"])
        assert "snakemake" in Path(f"/proc/{pid}/cmdline").read_text()
    elif script:
        pid = wait_for(lambda: [p for p, c in processes_of(chain.store).items() if script in c])[0]
    elif level == "job":
        # Program and server with what they forked.
        wait_for(lambda: len(processes_of(chain.store)) >= 6)
    os.kill(pid, number)
    assert process.wait(timeout=PATIENCE_S) == code
    assert words in (chain.folder / "said.txt").read_text()
    if number != KILL:
        assert not drivers_of(chain.store)
    assert_clean(chain.store)
    assert not chain.published("left")
    if words:
        assert chain.status("left")["state"] == "failed"
    model = chain.manifest("model")["started"]
    complete(chain, level)
    assert chain.manifest("model")["started"] == model


@pytest.mark.slow
def test_next_wrapper_ends_stragglers_when_wrapper_and_watchdog_die(chain: TinyPlan) -> None:
    assert chain.run("model").returncode == 0
    process = start(chain, "job")
    wait_for(lambda: len(processes_of(chain.store)) >= 6)
    me = str(process.pid)
    children = Path(f"/proc/{me}/task/{me}/children").read_text().split()
    marked = processes_of(chain.store)
    (watchdog,) = [int(child) for child in children if int(child) not in marked]
    process.send_signal(signal.SIGSTOP)  # it would start another watchdog
    os.kill(watchdog, KILL)
    process.kill()
    process.wait(timeout=PATIENCE_S)
    time.sleep(0.2)
    left = processes_of(chain.store)
    assert left, "the point of this test is that something is left"
    next(job for job in chain.jobs if job["id"] == "left")["config"]["children"] = False
    complete(chain, "job")
    assert not set(left) & set(processes_of(chain.store))


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["agentc run", "snakemake"])
def test_driver_that_is_killed_while_a_wrapper_starts_leaves_no_orphan(
    plan: TinyPlan, monkeypatch: pytest.MonkeyPatch, victim: str
) -> None:
    """Its parent is gone before the wrapper's Python is up and can ask to end with it."""
    plan.job("only", rows=300, delay=0.1)
    (plan.folder / "sitecustomize.py").write_text(
        "import os, sys, time\n"
        "if 'agentc.runtime.job' in sys.orig_argv:\n"
        "    parent = os.getppid()\n"
        f"    open({str(plan.folder / 'starting')!r}, 'w').write('%d' % parent)\n"
        "    while os.getppid() == parent:\n"
        "        time.sleep(0.01)\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{plan.folder}:{os.environ.get('PYTHONPATH', '')}")
    process = start(plan)
    starting = plan.folder / "starting"
    snakemake = int(wait_for(lambda: starting.exists() and starting.read_text()))
    os.kill(snakemake if victim == "snakemake" else process.pid, KILL)
    process.wait(timeout=PATIENCE_S)
    assert_clean(plan.store)
    assert not plan.status("only"), "it began nothing"


@pytest.mark.slow
def test_published_object_survives_the_death_of_its_wrapper(
    plan: TinyPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wrapper is killed right after the rename: to Snakemake the job failed, and Snakemake
    deletes the outputs of failed jobs unless told otherwise."""
    plan.job("first", rows=1)
    plan.job("second", inputs={"x": ["first"]}, kind="pair")
    with monkeypatch.context() as patch:
        (plan.folder / "sitecustomize.py").write_text(
            "import os, signal, sys\n"
            "if 'agentc.runtime.job' in sys.orig_argv:\n"
            "    from agentc.runtime.store import staging\n"
            "    rename = staging.publish\n"
            "    def rename_and_die(*words):\n"
            "        rename(*words)\n"
            "        os.kill(os.getpid(), signal.SIGKILL)\n"
            "    staging.publish = rename_and_die\n"
        )
        patch.setenv("PYTHONPATH", f"{plan.folder}:{os.environ.get('PYTHONPATH', '')}")
        assert start(plan).wait(timeout=PATIENCE_S) == 3
    assert plan.published("first")
    started = plan.manifest("first")["started"]
    assert_clean(plan.store)
    complete(plan, "run")
    assert plan.manifest("first")["started"] == started


@pytest.mark.slow
@pytest.mark.parametrize(
    ("level", "kills"),
    [("job", 6), ("run", 4), pytest.param("run", kills_wanted(40), marks=pytest.mark.long)],
)
def test_random_kills_of_anything(chain: TinyPlan, level: Level, kills: int) -> None:
    """Runs cut off at random moments by killing a random process, until one gets through; then
    others, in new stores."""
    chance, killed, first = dice(), Counter[str](), chain.store
    kinds, last, longest = (KINDS, "join", 4.0) if level == "run" else (OF_JOBS, "left", 1.2)
    if level != "run":
        assert chain.run("model").returncode == 0
    complete(chain, level)
    expected = digests(first)
    done = 0

    def empty_store() -> None:
        chain.store = first.with_name(f"store-{done + 1}")
        if level != "run":
            assert chain.run("model").returncode == 0

    empty_store()
    while killed.total() < kills or not chain.published(last):
        process = start(chain, level)
        if killed.total() < kills:
            hit = cut_off(chain.store, longest, chance, killed, process, kinds)
        else:
            hit = f"nothing: {process.wait(timeout=PATIENCE_S)}"
        print(killed.total(), hit, flush=True)
        # Those of the tiny programs, which nobody taught better, stand behind a bar.
        assert "\nTraceback" not in (chain.folder / "said.txt").read_text(), hit
        assert_clean(chain.store)
        if chain.published(last):
            assert digests(chain.store) == expected, hit
            done += 1
            if killed.total() < kills:
                empty_store()
    print(f"{killed.total()} kills in {done} stores: {dict(killed)}")

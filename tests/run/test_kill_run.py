"""kill -9 of `agentc run` and of Snakemake, and Ctrl-C: nothing is left, nothing is torn, and the
next run completes without repeating finished work."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tiny_plan import TinyPlan, drivers_of, processes_of, wait_for

from agentc.runtime.layout import StoreLayout
from agentc.store.objects import list_objects, verify_object


@pytest.fixture
def chain(plan: TinyPlan) -> TinyPlan:
    """A model, a rollout on a forking server, a second rollout, something over both."""
    plan.job("model", "checkpoint.py", kind="sft", produces="Checkpoint")
    lease = plan.lease(arguments=["--fork"])
    for name in ("left", "right"):
        plan.job(
            name, inputs={"policy": ["model"]}, leases=[lease], call=True, rows=20, delay=0.05,
            children=True, say=name,
        )  # fmt: skip
    plan.session("both", "left", "right")
    plan.job("join", inputs={"rollouts": ["left", "right"]}, kind="pair", rows=10, delay=0.05)
    return plan


def start(plan: TinyPlan) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        plan.run_all_argv(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def assert_clean(plan: TinyPlan) -> None:
    wait_for(lambda: not processes_of(plan.store) and not drivers_of(plan.store), timeout=15)
    found, problems = list_objects(StoreLayout(plan.store))
    assert problems == []
    assert [problem for stored in found for problem in verify_object(stored)] == []


@pytest.mark.parametrize("victim", ["agentc run", "snakemake"])
def test_killed_driver_leaves_nothing_and_the_next_run_completes(
    chain: TinyPlan, victim: str
) -> None:
    process = start(chain)
    wait_for(lambda: chain.status("left").get("state") == "running")
    if victim == "snakemake":
        wrapper = chain.status("left")["pid"]
        parent = int(Path(f"/proc/{wrapper}/stat").read_text().rsplit(")", 1)[1].split()[1])
        assert "snakemake" in Path(f"/proc/{parent}/cmdline").read_text()
        os.kill(parent, signal.SIGKILL)
    else:
        process.kill()
    process.wait(timeout=30)
    assert_clean(chain)
    model = chain.manifest("model")["started"]
    done = chain.run_all()
    assert done.returncode == 0, done.stderr
    assert chain.manifest("model")["started"] == model


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_signals_stop_the_run_cleanly(chain: TinyPlan, number: int, code: int) -> None:
    process = start(chain)
    wait_for(lambda: chain.status("left").get("state") == "running")
    process.send_signal(number)
    assert process.wait(timeout=30) == code
    assert not drivers_of(chain.store)
    assert_clean(chain)
    assert chain.published("model")
    assert chain.run_all().returncode == 0


def test_published_object_survives_the_death_of_its_wrapper(plan: TinyPlan) -> None:
    """The wrapper is killed right after the rename: to Snakemake the job failed, and Snakemake
    deletes the outputs of failed jobs unless told otherwise."""
    plan.job("first", rows=1)
    plan.job("second", inputs={"x": ["first"]}, kind="pair")
    argv = plan.run_all_argv()
    script = plan.folder / "sitecustomize.py"
    script.write_text(
        "import os, signal, sys\n"
        "if 'agentc.runtime.job' in sys.orig_argv:\n"
        "    from agentc.runtime import publish\n"
        "    rename = publish.publish\n"
        "    def rename_and_die(*words):\n"
        "        rename(*words)\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    publish.publish = rename_and_die\n"
    )
    done = subprocess.run(
        argv,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "PYTHONPATH": f"{plan.folder}:{os.environ.get('PYTHONPATH', '')}"},
    )
    assert done.returncode == 3
    assert plan.published("first")
    started = plan.manifest("first")["started"]
    assert_clean(plan)
    done = plan.run_all()
    assert done.returncode == 0, done.stderr
    assert plan.manifest("first")["started"] == started


@pytest.mark.slow
def test_random_kills_of_anything(chain: TinyPlan) -> None:
    """Runs cut off at random moments by killing a random process, until one gets through."""
    chance = random.Random(11)
    expected: str | None = None
    for _ in range(20):
        process = start(chain)
        time.sleep(chance.uniform(0.0, 4.0))
        victims = sorted({process.pid, *drivers_of(chain.store), *processes_of(chain.store)})
        with contextlib.suppress(ProcessLookupError):
            os.kill(chance.choice(victims), signal.SIGKILL)
        process.wait(timeout=60)
        assert_clean(chain)
        if chain.published("join"):
            break
    done = chain.run_all()
    assert done.returncode == 0, done.stderr
    data = chain.store / "objects" / chain.object("join") / "data" / "trajectories.jsonl"
    expected = data.read_text()
    undisturbed = TinyPlan(chain.folder.parent / "undisturbed")
    undisturbed.jobs, undisturbed.sessions = chain.jobs, chain.sessions
    assert undisturbed.run_all().returncode == 0
    data = undisturbed.store / "objects" / chain.object("join") / "data" / "trajectories.jsonl"
    assert data.read_text() == expected

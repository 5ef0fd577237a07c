"""kill -9 of `agentc run` and of Snakemake, and Ctrl-C: nothing is left, nothing is torn, and the
next run completes without repeating finished work."""

from __future__ import annotations

import os
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from kills import assert_clean, cut_off, dice, digests, kills_wanted
from tests.support.patience import PATIENCE_S, wait_for
from tiny_plan import TinyPlan, drivers_of

pytestmark = pytest.mark.slow


@pytest.fixture
def chain(plan: TinyPlan) -> TinyPlan:
    """A model, a rollout on a forking server, a second rollout, something over both."""
    plan.job("model", "checkpoint.py", kind="sft", produces="Checkpoint")
    lease = plan.lease(arguments=["--fork", str(plan.outlived)])
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
    process.wait(timeout=PATIENCE_S)
    assert_clean(chain.store)
    model = chain.manifest("model")["started"]
    done = chain.run_all()
    assert done.returncode == 0, done.stderr
    assert chain.manifest("model")["started"] == model


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
    os.kill(snakemake if victim == "snakemake" else process.pid, signal.SIGKILL)
    process.wait(timeout=PATIENCE_S)
    assert_clean(plan.store)
    assert not plan.status("only"), "it began nothing"


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_signals_stop_the_run_cleanly(chain: TinyPlan, number: int, code: int) -> None:
    process = start(chain)
    wait_for(lambda: chain.status("left").get("state") == "running")
    process.send_signal(number)
    assert process.wait(timeout=PATIENCE_S) == code
    assert not drivers_of(chain.store)
    assert_clean(chain.store)
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
        "    from agentc.runtime.store import staging\n"
        "    rename = staging.publish\n"
        "    def rename_and_die(*words):\n"
        "        rename(*words)\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    staging.publish = rename_and_die\n"
    )
    done = subprocess.run(
        argv,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
        env={**os.environ, "PYTHONPATH": f"{plan.folder}:{os.environ.get('PYTHONPATH', '')}"},
    )
    assert done.returncode == 3
    assert plan.published("first")
    started = plan.manifest("first")["started"]
    assert_clean(plan.store)
    done = plan.run_all()
    assert done.returncode == 0, done.stderr
    assert plan.manifest("first")["started"] == started


@pytest.mark.slow
@pytest.mark.parametrize("kills", [4, pytest.param(kills_wanted(40), marks=pytest.mark.long)])
def test_random_kills_of_anything(chain: TinyPlan, kills: int) -> None:
    """Runs cut off at random moments by killing a random process, until one gets through; then
    others, in new stores."""
    chance, killed, first = dice(), Counter[str](), chain.store
    assert chain.run_all().returncode == 0
    expected = digests(first)
    chain.store, done = first.with_name("store-1"), 0
    while killed.total() < kills or not chain.published("join"):
        with (chain.folder / "said.txt").open("w+b") as said:
            process = subprocess.Popen(chain.run_all_argv(), stdout=said, stderr=said)
            if killed.total() < kills:
                hit = cut_off(chain.store, 4.0, chance, killed, process)
            else:
                hit = f"nothing: {process.wait(timeout=PATIENCE_S)}"
            said.seek(0)
            print(killed.total(), hit, flush=True)
            # Those of the tiny programs, which nobody taught better, stand behind a bar.
            assert b"\nTraceback" not in said.read(), hit
        assert_clean(chain.store)
        if chain.published("join"):
            assert digests(chain.store) == expected, hit
            done += 1
            if killed.total() < kills:
                chain.store = first.with_name(f"store-{done + 1}")
    print(f"{killed.total()} kills in {done} stores: {dict(killed)}")

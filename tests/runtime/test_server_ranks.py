"""Servers over several nodes: one rank on each, which live and die together.

`srun` is a stand-in that starts the other nodes' tasks on this machine; everything else is real.
tests/slurm/test_server_over_nodes.py does it on a real SLURM.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.patience import PATIENCE_S, wait_for
from tiny_plan import PROGRAMS, TinyPlan, processes_of

from agentc.runtime.servers import server_ranks

SRUN = """#!/bin/sh
echo "$@" >>"$0.words"
while [ "${1#--}" != "$1" ]; do shift; done
SLURM_NODEID=0 SLURMD_NODENAME=n2 "$@" &
SLURM_NODEID=1 SLURMD_NODENAME=n3 "$@" &
trap 'kill $(jobs -p)' TERM
wait
"""
RANKS: dict[str, Any] = {
    "nodes": 3,
    "each": ["--rank", "{rank}", "--nodes", "{nodes}", "--meet", "{first_node}:{meeting_port}"],
    "others": ["--headless"],
    "variables": {"MY_ADDRESS": "{node_address}"},
    "sizes": {"pipeline_parallel": 3},
}


@pytest.fixture
def nodes(tmp_path: Path) -> dict[str, str]:
    """Variables of a job with three nodes, whose first is this machine."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in (("srun", SRUN), ("scontrol", "#!/bin/sh\nexit 1\n")):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return {
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "SLURM_JOB_ID": "7",
        "SLURM_JOB_NUM_NODES": "3",
        "SLURM_JOB_NODELIST": "localhost,n[2-3]",
    }


@pytest.fixture
def rollout(plan: TinyPlan) -> TinyPlan:
    """A plan with a published checkpoint to serve."""
    plan.job("model", "checkpoint.py", kind="sft", produces="Checkpoint")
    assert plan.run("model").returncode == 0
    return plan


def log_of(plan: TinyPlan) -> Path:
    return plan.staging("act") / "logs" / "policy.log"


@pytest.mark.slow
def test_a_job_is_served_by_ranks_on_all_nodes(rollout: TinyPlan, nodes: dict[str, str]) -> None:
    lease = rollout.lease(script="ranked.py", ranks=RANKS)
    rollout.job("act", inputs={"model": ["model"]}, leases=[lease], call=True)
    done = rollout.run("act", **nodes)
    assert done.returncode == 0, done.stderr
    (log,) = (rollout.store / "objects").rglob("policy.log")
    said = log.read_text()
    assert "\nI am 0 of 3 and meet at 127.0.0.1:" in said
    for rank, node in ((1, "n2"), (2, "n3")):
        assert f"rank {rank} on {node}: I am {rank} of 3 and meet at 127.0.0.1:" in said
    words = (Path(nodes["PATH"].split(os.pathsep)[0]) / "srun.words").read_text()
    assert "--nodes=2 --ntasks=2 --ntasks-per-node=1 --nodelist=n2,n3" in words
    # No process is left: the fixture looks.


def test_a_rank_that_dies_ends_the_server(
    rollout: TinyPlan, nodes: dict[str, str], tmp_path: Path
) -> None:
    sign = tmp_path / "sign"
    lease = rollout.lease(script="ranked.py", ranks=RANKS, arguments=["--die-when", str(sign)])
    rollout.job("act", inputs={"model": ["model"]}, leases=[lease], call=True, rows=500, delay=0.1)
    process = rollout.start("act", **nodes)
    work = rollout.staging("act") / "work" / "rows.jsonl"
    wait_for(lambda: work.exists() and work.read_text().count("\n") > 1)
    sign.touch()
    said, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert "exited with 5, which ends the server" in said
    assert "an uncorrectable memory error" in said


@pytest.mark.slow
def test_ranks_do_not_outlive_a_killed_leader(rollout: TinyPlan, nodes: dict[str, str]) -> None:
    """Whatever kills the first node's processes, the others notice."""
    lease = rollout.lease(script="ranked.py", ranks=RANKS)
    rollout.job("act", inputs={"model": ["model"]}, leases=[lease], call=True, rows=500, delay=0.1)
    process = rollout.start("act", **nodes)
    wait_for(
        lambda: log_of(rollout).exists() and "rank 2 on n3: I am" in log_of(rollout).read_text(),
    )
    ours = processes_of(rollout.store)
    (leader,) = [pid for pid, line in ours.items() if "server_ranks lead" in line]
    os.killpg(leader, signal.SIGKILL)
    said, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert "was killed by signal 9" in said


def test_ranks_that_never_come_are_named(rollout: TinyPlan, nodes: dict[str, str]) -> None:
    srun = Path(nodes["PATH"].split(os.pathsep)[0]) / "srun"
    srun.write_text("#!/bin/sh\necho srun: error: Unable to create step >&2\nexit 1\n")
    lease = rollout.lease(script="ranked.py", ranks=RANKS)
    rollout.job("act", inputs={"model": ["model"]}, leases=[lease], call=True)
    done = rollout.run("act", **nodes)
    assert done.returncode == 1
    assert "Unable to create step" in done.stderr
    assert "the other ranks' step is over: srun exited with 1" in done.stderr


def test_outside_of_slurm_it_is_one_process(rollout: TinyPlan) -> None:
    lease = rollout.lease(ranks=RANKS)  # server.py knows no --rank
    rollout.job("act", inputs={"model": ["model"]}, leases=[lease], call=True)
    done = rollout.run("act", SLURM_JOB_ID="")
    assert done.returncode == 0, done.stderr


def test_strangers_do_not_count_as_ranks(nodes: dict[str, str], tmp_path: Path) -> None:
    """Who does not know the server's token is turned away, and its rank does not start."""
    srun = Path(nodes["PATH"].split(os.pathsep)[0]) / "srun"
    srun.write_text(SRUN.replace("SLURM_NODEID=0", "AGENTC_TOKEN=guessed SLURM_NODEID=0"))
    program = [sys.executable, str(PROGRAMS / "ranked.py"), "--ready-file", str(tmp_path / "r")]
    words = server_ranks.command(tmp_path / "ranks.json", program, RANKS)
    process = subprocess.Popen(
        words, env={**os.environ, **nodes, "AGENTC_TOKEN": "right"}, stdout=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    assert process.stdout is not None
    said = ""
    while "rank 2 on n3: I am 2 of 3" not in said:
        said += process.stdout.readline()
    process.terminate()
    rest, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 128 + signal.SIGTERM
    assert "I am 1" not in said + rest
    assert "I am 0" not in said + rest, "it waits for all"

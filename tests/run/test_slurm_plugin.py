"""Snakemake with its own plugin for SLURM, as agentc starts it, on commands that replace a cluster:
what becomes of a run whose status query fails, and of one whose node fails. tests/slurm has the
real ones."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.support.patience import PATIENCE_S, wait_for

from agentc.run.slurm_queue import ENDS, TAKEN, EndsFile, QueuedJob, write_taken_over

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_spec("snakemake_executor_plugin_slurm") is None, reason="needs `.[slurm]`"
    ),
]

SNAKEFILE = """
rule all:
    input: "after.txt", "long.txt"
rule first:
    output: "first.txt"
    shell: "true"
rule after:
    input: "first.txt"
    output: "after.txt"
    shell: "true"
rule long:
    output: "long.txt"
    shell: "true"
"""
SBATCH = """
echo "$@" >> calls
case "$*" in *"None assigned"*)
  echo "sbatch: error: Unable to open file assigned" >&2; exit 1;; esac
case "$*" in *rule_first*) rule=first;; *rule_after*) rule=after;; *) rule=long;; esac
echo RUNNING > state.$rule
(
  # The long one lasts until the job after the short one is there.
  while [ $rule = long ] && [ ! -e after.txt ]; do sleep 0.1; [ -e ends ] || exit; done
  echo done > $rule.txt; echo COMPLETED > state.$rule
) > /dev/null 2>&1 &
case $rule in first) echo 1;; long) echo 2;; after) echo 3;; esac
"""
SACCT = """
echo "$@" >> accounting
case "$*" in *nodelist*) echo "None assigned"; exit;; esac
case "$*" in *JobIdRaw*) ;; *) exit;; esac  # account of the user, reasons of an end
echo x >> asked
if [ -e fails ] || [ $(wc -l < asked) -le {fails} ]; then echo "sacct: error: Problem talking" >&2
  exit 1; fi
if [ -e {never} ]; then :; else touch {never}; echo "1|NODE_FAIL"; echo "2|RUNNING"; exit; fi
n=0; for rule in first long after; do
  n=$((n + 1)); [ -e state.$rule ] && echo "$n|$(cat state.$rule)"; done; exit 0
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Where it runs; its jobs end with the test."""
    ends = tmp_path / "ends"
    ends.touch()
    yield tmp_path
    ends.unlink(missing_ok=True)


def start(
    folder: Path,
    *more: str,
    fails: int = 0,
    node_fails: bool = False,
    snakefile: str = SNAKEFILE,
    sbatch: str = SBATCH,
    ours: tuple[str, ...] = (),
) -> subprocess.Popen[str]:
    """Snakemake on the three jobs; the first so many queries fail."""
    (folder / "Snakefile").write_text(snakefile)
    if not node_fails:
        (folder / "lost").touch()
    commands = folder / "bin"
    commands.mkdir()
    for name, script in {
        "sbatch": sbatch,
        "sacct": SACCT.format(fails=fails, never="lost"),
        "squeue": "exit 1",
        "scancel": "exit 0",
        "sinfo": "exit 0",
        "scontrol": "echo 'MinJobAge = 300 sec'",
    }.items():
        (commands / name).write_text(f"#!/bin/sh\n{script}\n")
        (commands / name).chmod(0o755)
    argv = [sys.executable, "-m", "agentc.run.slurm_plugin", ENDS, str(folder / "ends.json")]
    argv += ours
    argv += ["--executor", "slurm", "--jobs", "5", "--latency-wait", "5", "--slurm-requeue"]
    argv += ["--slurm-no-account", "--slurm-init-seconds-before-status-checks", "1"]
    argv += ["--default-resources", "slurm_partition=main", "mem_mb=100", "runtime=5", *more]
    return subprocess.Popen(
        argv,
        cwd=folder,
        env={**os.environ, "PATH": f"{commands}:{os.environ['PATH']}", "HOME": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_query_that_fails_is_sent_again_though_another_job_runs(folder: Path) -> None:
    """Each look sends it five times; the second look has an answer again. A node fails, too, whose
    job SLURM queues again: accounting names no node by then."""
    process = start(folder, fails=7, node_fails=True)
    said, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, said
    assert said.count("the query will be sent again") == 1
    assert "has been submitted with SLURM jobid 3" in said
    assert (folder / "lost").exists(), "it was reported to Snakemake"


def test_ends_that_the_queue_shows_need_no_accounting(folder: Path) -> None:
    (folder / "fails").touch()
    process = start(folder)
    ends = EndsFile(folder / "ends.json")
    wait_for((folder / "first.txt").exists)
    ends.add({"1": "COMPLETED", "77": "COMPLETED"})
    wait_for((folder / "long.txt").exists)
    ends.add({"2": "TIMEOUT", "3": "COMPLETED"})
    said, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1, said
    assert "SLURM-job '2' failed, SLURM status is: 'TIMEOUT'" in said
    assert "Finished jobid" in said
    assert "Reason" not in (folder / "accounting").read_text(), "accounting is not needed for it"


def test_cancelled_job_is_reported_whoever_cancelled_it(folder: Path) -> None:
    """Accounting names the user."""
    process = start(folder)
    wait_for((folder / "first.txt").exists)
    wait_for((folder / "state.long").exists)
    (folder / "ends").unlink()
    (folder / "state.long").write_text("CANCELLED by 0\n")
    said, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert "SLURM-job '2' failed, SLURM status is: 'CANCELLED'" in said


FIVE = """
rule all:
    input: expand("{n}.txt", n=range(5))
rule one:
    output: "{n}.txt"
    shell: "true"
"""
ARRAYS = """
echo "$@" >> calls
for n in 0 1 2 3 4; do echo done > $n.txt; done
wc -l < calls
"""


def test_array_waits_for_no_jobs_that_come_later(folder: Path) -> None:
    """Five jobs, two of which may be in the queue: the plugin would wait for all five, and
    Snakemake for the two."""
    process = start(
        folder, "--slurm-array-jobs", "one", "--jobs", "2", snakefile=FIVE, sbatch=ARRAYS
    )
    ends = EndsFile(folder / "ends.json")
    every = {f"{n}{task}": "COMPLETED" for n in range(1, 6) for task in ("", "_1", "_2")}
    wait_for((folder / "0.txt").exists)
    ends.add(every)
    said, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, said
    calls = (folder / "calls").read_text().splitlines()
    arrays_of_two = [call for call in calls if "--array=1-2" in call]
    assert calls[0] in arrays_of_two
    assert 2 * len(arrays_of_two) + len([c for c in calls if "--array" not in c]) == 5


KEYS = """
rule all:
    input: "after.txt", "b.txt"
rule one:
    output: "{key,[ab]}.txt"
    shell: "true"
rule after:
    input: "a.txt"
    output: "after.txt"
    shell: "true"
"""
OTHERS = """
echo "$@" >> calls
case "$*" in *rule_after*) echo done > after.txt; echo 3;; *) echo done > b.txt; echo 2;; esac
"""


@pytest.mark.parametrize("more", [(), ("--slurm-array-jobs", "one")], ids=["single", "array"])
def test_job_of_a_killed_run_is_taken_over(folder: Path, more: tuple[str, ...]) -> None:
    """What does not depend on it is submitted at once, and its end is that of a submission."""
    taken = folder / "taken.json"
    old = QueuedJob("41", "RUNNING", "None", "one/a", "agentc-0a1b-old")
    write_taken_over(taken, [old, QueuedJob("40_1", "RUNNING", "None", "one/*", "agentc-0a1b")])
    process = start(folder, *more, snakefile=KEYS, sbatch=OTHERS, ours=(TAKEN, str(taken)))
    ends = EndsFile(folder / "ends.json")
    wait_for((folder / "b.txt").exists)
    assert not (folder / "after.txt").exists()
    wait_for(lambda: "agentc-0a1b-old" in (folder / "accounting").read_text())
    (folder / "a.txt").write_text("done")
    ends.add({"41": "COMPLETED", "2": "COMPLETED", "3": "COMPLETED"})
    said, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, said
    assert len((folder / "calls").read_text().splitlines()) == 2, "it was submitted again"
    assert set(submitted_numbers(said)) == {"41", "2", "3"}


def test_job_of_a_killed_run_that_fails_is_reported(folder: Path) -> None:
    taken = folder / "taken.json"
    write_taken_over(taken, [QueuedJob("41", "RUNNING", "None", "one/a", "agentc-0a1b-old")])
    process = start(folder, snakefile=KEYS, sbatch=OTHERS, ours=(TAKEN, str(taken)))
    wait_for((folder / "b.txt").exists)
    EndsFile(folder / "ends.json").add({"41": "TIMEOUT", "2": "COMPLETED"})
    said, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1, said
    assert "SLURM-job '41' failed, SLURM status is: 'TIMEOUT'" in said
    assert len((folder / "calls").read_text().splitlines()) == 1


def submitted_numbers(said: str) -> list[str]:
    return re.findall(r"SLURM jobid (\d+) \(log: ", said)

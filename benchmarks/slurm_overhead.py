"""`python -m benchmarks.slurm_overhead`: what a job costs on SLURM, over the same job of a plain
Snakemake workflow, and how many SLURM jobs the shipped specs make, with and without sessions.

Brings a SLURM of four nodes up on this machine (tests/slurm; needs root), and stops it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from tests.slurm.cluster import Cluster, ClusterUnavailableError, running_cluster
from tests.slurm.daemons import DaemonError
from tests.support.tiny_plan import PROGRAMS, TinyPlan

from benchmarks.processes import CommandError
from benchmarks.reduced import ROOT
from benchmarks.workplace import Workplace

SPECS = (
    "quickstart.yaml",
    "agent_r/tiny.yaml",
    "compare/textcraft.yaml",
    "eto/sciworld.yaml",
    "agent_r/sciworld.yaml",
)
_PROFILE = """\
executor: slurm
jobs: 100
latency-wait: 20
scheduler: greedy
default-resources: {mem_mb: 1000, runtime: 10}
slurm-init-seconds-before-status-checks: 2
"""
_PLAIN = """\
rule all:
    input: "join/data/trajectories.jsonl"
rule first:
    output: "first/data/trajectories.jsonl"
    shell: "exec PYTHON PROGRAM FOLDER/first/job.json"
rule part:
    input: "first/data/trajectories.jsonl"
    output: "part{n}/data/trajectories.jsonl"
    shell: "exec PYTHON PROGRAM FOLDER/part{wildcards.n}/job.json"
rule join:
    input: expand("part{n}/data/trajectories.jsonl", n=range(COUNT))
    output: "join/data/trajectories.jsonl"
    shell: "exec PYTHON PROGRAM FOLDER/join/job.json"
"""


@dataclass(frozen=True, slots=True)
class Account:
    """A run of the diamond: seconds by the clock, SLURM jobs, seconds that a job held its node on
    average (SLURM tells whole seconds), seconds between two submissions."""

    wall_s: float
    jobs: int
    held_s: float
    apart_s: float


def main(arguments: Sequence[str] | None = None) -> int:
    """0 with two tables on standard output; 1 when a run failed or there can be no cluster."""
    parser = argparse.ArgumentParser(prog="benchmarks.slurm_overhead", description=__doc__)
    parser.add_argument("--parts", type=int, default=12, help="jobs side by side (12)")
    parser.add_argument("--rounds", type=int, default=2, help="runs of each kind (2)")
    options = parser.parse_args(arguments)
    try:
        with (
            tempfile.TemporaryDirectory(prefix="agentc-slurm-overhead-") as folder,
            running_cluster(4) as cluster,
        ):
            print(f"cluster of {len(cluster.nodes)} nodes up in {cluster.seconds:.1f} s\n")
            plain, wrapped = [], []
            for number in range(options.rounds):
                place = Path(folder) / str(number)
                plain.append(_plain(place / "plain", cluster, options.parts))
                wrapped.append(_wrapped(place / "agentc", cluster, options.parts))
            _print_overhead(plain, wrapped)
    except (ClusterUnavailableError, DaemonError, CommandError) as error:
        print(f"slurm_overhead: {error}", file=sys.stderr)
        return 1
    _print_counts()
    return 0


def _plain(folder: Path, cluster: Cluster, parts: int) -> Account:
    """The workflow that one would write by hand."""
    names = ["first", "join", *(f"part{n}" for n in range(parts))]
    for name in names:
        _lay_out(folder / name)
    rules = _PLAIN.replace("COUNT", str(parts)).replace("PYTHON", sys.executable)
    rules = rules.replace("PROGRAM", str(PROGRAMS / "rows.py")).replace("FOLDER", str(folder))
    (folder / "Snakefile").write_text(rules)
    argv = [sys.executable, "-m", "snakemake", "--snakefile", str(folder / "Snakefile")]
    argv += ["--workflow-profile", "none", "--profile", str(_profile(folder))]
    return _account(argv, folder, cluster)


def _wrapped(folder: Path, cluster: Cluster, parts: int) -> Account:
    """The same programs as a plan of agentc. Its software stack is built beforehand."""
    os.environ["AGENTC_SOFTWARE"] = str(folder.parent / "software")
    plan = TinyPlan(folder)
    plan.job("warm", rows=1)
    plan.run("warm")
    plan.jobs.clear()
    plan.job("first", rows=1)
    names = [f"part{n}" for n in range(parts)]
    for name in names:
        plan.job(name, rows=1, say=name, inputs={"x": ["first"]}, kind="expert")
    plan.job("join", rows=1, inputs={"x": names}, kind="pair")
    argv = plan.run_all_argv(f"profile={_profile(folder)}")
    return _account(argv, folder, cluster)


def _account(argv: list[str], folder: Path, cluster: Cluster) -> Account:
    before = {job.id for job in cluster.history()}
    workplace = Workplace(folder)
    cost = workplace.run(argv, folder, PYTHONPATH=str(ROOT / "compiler"))
    jobs = [job.id for job in cluster.history() if job.id not in before]
    shown = [cluster.command("scontrol", "show", "job", str(number)) for number in jobs]
    held = [_moment(text, "EndTime") - _moment(text, "StartTime") for text in shown]
    submitted = sorted(_moment(text, "SubmitTime") for text in shown)
    # Of the jobs that become ready at one time: all but the first and the last.
    apart = (submitted[-2] - submitted[1]) / max(1, len(submitted) - 3)
    return Account(cost.wall_s, len(jobs), mean(held), apart)


def _moment(text: str, name: str) -> float:
    found = re.search(rf"\b{name}=(\S+)", text)
    assert found is not None, text
    return time.mktime(time.strptime(found.group(1), "%Y-%m-%dT%H:%M:%S"))


def _print_overhead(plain: Sequence[Account], wrapped: Sequence[Account]) -> None:
    print("| run | wall | SLURM jobs | a job holds its node for | between two submissions |")
    print("|---|---|---|---|---|")
    for name, accounts in (("plain Snakemake", plain), ("agentc run", wrapped)):
        for one in accounts:
            print(
                f"| {name} | {one.wall_s:.1f} s | {one.jobs} | {one.held_s:.2f} s"
                f" | {one.apart_s:.2f} s |"
            )
    best_plain, best = (min(one.held_s for one in found) for found in (plain, wrapped))
    quick_plain, quick = (min(one.wall_s for one in found) for found in (plain, wrapped))
    jobs = wrapped[0].jobs
    print(
        f"\nover plain Snakemake: {best - best_plain:+.2f} s of its node for each job;"
        f" {(quick - quick_plain) / jobs:+.2f} s by the clock for each of {jobs} jobs"
        f" (load average {os.getloadavg()[0]:.1f})\n"
    )


def _print_counts() -> None:
    print("| spec | jobs, one by one | with sessions | model servers started, without | with |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        workplace = Workplace(Path(folder))
        for number, name in enumerate(SPECS):
            spec = ROOT / "specs" / name
            place = Path(folder) / str(number)
            workplace.agentc("bundle", "--bare", str(spec), "-o", str(place))
            plan = json.loads((place / "plan.json").read_text(encoding="utf-8"))
            print(f"| {name} | {' | '.join(map(str, _counts(plan)))} |")


def _counts(plan: Mapping[str, Any]) -> tuple[int, int, int, int]:
    jobs = {f"{job['kind']}/{job['key']}": job for job in plan["jobs"]}
    sessions = plan["sessions"]
    made_by = {m: s["id"] for s in sessions for m in s["members"]}
    ids = [job["id"] for job in jobs.values()]
    served = [
        job["id"]
        for job in jobs.values()
        if any(lease["role"] == "policy" and lease["port"] != "none" for lease in job["leases"])
    ]
    return (
        len(ids),
        len({made_by.get(name, name) for name in ids}),
        len(served),
        len({made_by.get(name, name) for name in served}),
    )


def _profile(folder: Path) -> Path:
    place = folder / "profile"
    place.mkdir(parents=True, exist_ok=True)
    (place / "config.yaml").write_text(_PROFILE)
    return place


def _lay_out(folder: Path) -> None:
    """What the wrapper prepares for a program, for one that runs without it."""
    for name in ("data", "work", "logs"):
        (folder / name).mkdir(parents=True)
    job = {"id": folder.name, "key": folder.name, "kind": "rollout", "config": {"rows": 1}}
    job |= {"placement": {}, "inputs": {}, "leases": {}, "out": str(folder / "data")}
    job |= {name: str(folder / name) for name in ("work", "logs")}
    job |= {name: str(folder / f"{name}.json") for name in ("facts", "progress")}
    (folder / "job.json").write_text(json.dumps(job))


if __name__ == "__main__":
    sys.exit(main())

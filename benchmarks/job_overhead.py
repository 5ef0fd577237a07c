"""Bench b: what the job wrapper costs, over the same program in a plain Snakemake rule.

The same trivial jobs, one at a time, under the same Snakemake with the same options.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.support.tiny_plan import PROGRAMS, TinyPlan

from agentc import resources
from agentc.run.snakemake_process import DriverOptions, driver_argv
from agentc.store.paths import open_store
from benchmarks.figures import Figure
from benchmarks.processes import Cost
from benchmarks.reduced import ROOT
from benchmarks.workplace import Workplace, object_folder

JOBS = 20
REPEATS = 3
LIMIT_S = 0.1

_PLAIN = """\
rule all:
    input: expand("job{n}/data/trajectories.jsonl", n=range(COUNT))
rule job:
    output: "job{n}/data/trajectories.jsonl"
    shell: "exec PYTHON PROGRAM job{wildcards.n}/job.json"
"""


def measure_job_overhead(workplace: Workplace) -> list[Figure]:
    """Best of three for each. The software stack (an empty one) is built beforehand."""
    plain, wrapped = [], []
    for repeat in range(REPEATS):
        plain.append(_plain(workplace, workplace.folder / f"plain-{repeat}"))
        wrapped.append(_wrapped(workplace, workplace.folder / f"wrapped-{repeat}"))
    plain_s, wrapped_s = (min(c.wall_s for c in costs) for costs in (plain, wrapped))
    plain_cpu, wrapped_cpu = (min(c.cpu_s for c in costs) for costs in (plain, wrapped))
    over, over_cpu = (wrapped_s - plain_s) / JOBS, (wrapped_cpu - plain_cpu) / JOBS
    return [
        Figure(
            bench="b",
            name=f"{JOBS} trivial jobs, plain `shell:` rule",
            value=plain_s,
            unit="s",
            note=f"CPU {plain_cpu:.1f} s, Snakemake's own start included",
        ),
        Figure(
            bench="b",
            name=f"{JOBS} trivial jobs, through agentc.runtime.job",
            value=wrapped_s,
            unit="s",
            ratio=wrapped_s / plain_s,
            against="plain `shell:` rule",
            note=f"CPU {wrapped_cpu:.1f} s",
        ),
        Figure(
            bench="b",
            name="wrapper, for each job",
            value=over,
            unit="s",
            ratio=over / LIMIT_S,
            against=f"limit of {LIMIT_S} s",
            note=f"CPU {over_cpu:.3f} s",
        ),
    ]


def _wrapped(workplace: Workplace, folder: Path) -> Cost:
    plan = TinyPlan(folder)
    jobs = [plan.job(f"job{n}", rows=1) for n in range(JOBS)]
    warm = plan.job("warm", rows=1)
    (plan.folder / "Snakefile").write_text(resources.snakefile().read_text(encoding="utf-8"))
    plan.write()
    layout = open_store(str(plan.store))
    workplace.job(plan.path, plan.store, warm["id"])
    targets = [object_folder(plan.store, job) / "artifact.json" for job in jobs]
    argv = driver_argv(plan.folder, layout, targets, DriverOptions(jobs=1))
    return workplace.run(argv, plan.folder)


def _plain(workplace: Workplace, folder: Path) -> Cost:
    for n in range(JOBS):
        _lay_out(folder / f"job{n}")
    program = str(PROGRAMS / "rows.py")
    rule = _PLAIN.replace("COUNT", str(JOBS))
    rule = rule.replace("PYTHON", sys.executable).replace("PROGRAM", program)
    (folder / "Snakefile").write_text(rule)
    argv = [sys.executable, "-m", "snakemake", "--snakefile", str(folder / "Snakefile")]
    argv += ["--workflow-profile", "none", "--cores", "1", "--scheduler", "greedy"]
    return workplace.run(argv, folder, PYTHONPATH=str(ROOT / "compiler"))


def _lay_out(folder: Path) -> None:
    """What the wrapper prepares for a program, for one that runs without it."""
    for name in ("data", "work", "logs"):
        (folder / name).mkdir(parents=True)
    job: dict[str, Any] = {"id": folder.name, "key": folder.name, "kind": "rollout"}
    job |= {"config": {"rows": 1}, "placement": {}, "inputs": {}, "leases": {}}
    job |= {"out": str(folder / "data"), "work": str(folder / "work")}
    job |= {"logs": str(folder / "logs"), "facts": str(folder / "facts.json")}
    job |= {"progress": str(folder / "progress.json")}
    (folder / "job.json").write_text(json.dumps(job))

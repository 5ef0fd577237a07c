"""The graph that rivals are compared on is the same one in each tool's own words."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import yaml
from benchmarks.compilers import GRAPH

from agentc.backend_api import load_backends
from agentc.compilation import compile_spec

ROUNDS = 3
KINDS = {"explore": "rollout"}
"""Rules of the Snakefile that do the work of another kind."""


def kinds_by_agentc() -> Counter[str]:
    compiled = compile_spec(GRAPH / "eto.yaml", {"rounds": str(ROUNDS)}, load_backends())
    assert compiled.plan is not None
    return Counter(job.kind for job in compiled.plan.jobs)


def test_snakemake_has_the_same_jobs(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "snakemake", "-n", "-q", "rules", "-c1"]
    argv += ["-s", str(GRAPH / "Snakefile"), "--config", f"rounds={ROUNDS}"]
    ended = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=True)
    counts = dict(re.findall(r"^(\w+) +(\d+)$", ended.stdout + ended.stderr, re.MULTILINE))
    found: Counter[str] = Counter()
    for rule, count in counts.items():
        if rule not in ("all", "total"):
            found[KINDS.get(rule, rule)] += int(count)
    assert found == kinds_by_agentc()


def test_dvc_has_as_many_stages() -> None:
    stages = yaml.safe_load((GRAPH / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
    count = sum(ROUNDS if "foreach" in stage else 1 for stage in stages.values())
    assert count == kinds_by_agentc().total()

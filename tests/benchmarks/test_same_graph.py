"""The graph that rivals are compared on is the same one in each tool's own words."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import yaml
from benchmarks.compilers import (
    BESIDE_SNAKEMAKE,
    SHAPES,
    Shape,
    agentc_spec,
    compiled_by_agentc,
    dvc_params,
)
from benchmarks.workplace import Workplace

from agentc.backend_api import load_backends
from agentc.compilation import compile_spec

NUMBER = 3
KINDS = {"explore": "rollout"}
"""Rules of the Snakefile that do the work of another kind."""

shapes = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)


def kinds_by_agentc(shape: Shape, tmp_path: Path) -> Counter[str]:
    spec = tmp_path / "eto.yaml"
    spec.write_text(agentc_spec(shape, NUMBER), encoding="utf-8")
    compiled = compile_spec(spec, {}, load_backends())
    assert compiled.plan is not None, compiled.diagnostics
    return Counter(job.draft.kind for job in compiled.plan.jobs)


@shapes
def test_the_size_is_as_stated(shape: Shape, tmp_path: Path) -> None:
    jobs = kinds_by_agentc(shape, tmp_path).total()
    assert jobs == shape.fixed + shape.each * NUMBER
    assert shape.number(jobs) == NUMBER


@pytest.mark.slow
@shapes
def test_snakemake_has_the_same_jobs(shape: Shape, tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "snakemake", "-n", "-q", "rules", "-c1"]
    argv += ["-s", str(shape.folder / "Snakefile"), "--config", f"{shape.param}={NUMBER}"]
    ended = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=True)
    counts = dict(re.findall(r"^(\w+) +(\d+)$", ended.stdout + ended.stderr, re.MULTILINE))
    found: Counter[str] = Counter()
    for rule, count in counts.items():
        if rule not in ("all", "total"):
            found[KINDS.get(rule, rule)] += int(count)
    assert found == kinds_by_agentc(shape, tmp_path)


@shapes
def test_dvc_has_as_many_stages(shape: Shape, tmp_path: Path) -> None:
    params = dvc_params(shape, NUMBER)
    text = (shape.folder / "dvc.yaml").read_text(encoding="utf-8")
    stages = yaml.safe_load(text)["stages"].values()
    count = sum(len(params[s["foreach"][2:-1]]) if "foreach" in s else 1 for s in stages)
    assert count == kinds_by_agentc(shape, tmp_path).total()


def test_a_snakemake_without_agentc_finds_what_the_compiled_snakefile_imports(
    tmp_path: Path,
) -> None:
    """The rival's has an environment of its own; `-S` is a Python without installed packages."""
    _, compiled = compiled_by_agentc(Workplace(tmp_path), SHAPES["rounds"], 1)
    text = (compiled / "Snakefile").read_text(encoding="utf-8")
    imports = "\n".join(re.findall(r"^(?:from|import) .*agentc.*$", text, re.MULTILINE))
    assert imports
    argv = [sys.executable, "-S", "-c", imports]
    assert subprocess.run(argv, env=BESIDE_SNAKEMAKE, check=False).returncode == 0
    assert subprocess.run(argv, env={}, check=False).returncode

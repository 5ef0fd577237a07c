"""The static Snakefile under real Snakemake and the real job runtime, with toy programs.

What matters most: whatever Snakemake does, it never deletes a manifest that was published.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.drafted import changed
from tests.support.patience import PATIENCE_S
from toy_plan import job, plan

import agentc.runtime
from agentc.emit import compile_to
from agentc.plan.job import Plan, ResourceRequest

pytest.importorskip("snakemake", reason="needs Snakemake")

MADE = plan(
    job("base", "model"),
    job("scores", "evaluate", served=None, policy=["base"]),
    job("explore", "rollout", data=["base"]),
    job("tuned", "dpo", data=["explore"]),
    job("report", "report", a=["scores"], b=["tuned"]),
)
# The toy has no server to share; a session is what Snakemake sees of one.
FUSED = replace(
    MADE,
    sessions=(
        plan(
            job("base", "model"),
            job("scores", "evaluate", served="base"),
            job("explore", "rollout", served="base"),
        ).sessions[0],
    ),
)


def snakemake(directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "snakemake", "-c2", *words],
        cwd=directory,
        env={**os.environ, "HOME": str(directory)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def manifest(directory: Path, made: Plan, name: str) -> Path:
    objects = directory / ".agentc/store/objects"
    return objects / made.by_id()[name].object / "artifact.json"


def started(done: subprocess.CompletedProcess[str]) -> dict[str, int]:
    """Counts by rule from Snakemake's table of jobs."""
    lines = (done.stdout + done.stderr).splitlines()
    if "Job stats:" not in lines:
        return {}
    table = lines[lines.index("Job stats:") + 3 :]
    rows = [line.split() for line in table[: table.index("")]]
    return {name: int(count) for name, count in rows if name not in ("all", "total")}


@pytest.fixture
def compiled(tmp_path: Path) -> Path:
    compile_to(tmp_path, FUSED)
    return tmp_path


@pytest.mark.slow
def test_a_compiled_directory_runs_by_itself(compiled: Path) -> None:
    done = snakemake(compiled)
    assert done.returncode == 0, done.stderr
    assert started(done) == {"model": 1, "session": 1, "dpo": 1, "report": 1}
    for one in FUSED.jobs:
        assert json.loads(manifest(compiled, FUSED, one.id).read_text())["id"] == one.id
    again = snakemake(compiled)
    assert "Nothing to be done" in again.stdout + again.stderr

    # A member that is new in a session runs with what follows it, and nothing else.
    manifest(compiled, FUSED, "report").unlink()
    manifest(compiled, FUSED, "scores").unlink()
    session = compiled / ".agentc/store/objects" / FUSED.sessions[0].object / "artifact.json"
    session.unlink()
    before = manifest(compiled, FUSED, "tuned").stat().st_mtime_ns
    done = snakemake(compiled)
    assert done.returncode == 0, done.stderr
    assert started(done) == {"session": 1, "report": 1}
    assert manifest(compiled, FUSED, "tuned").stat().st_mtime_ns == before

    # Even when it is told to run everything, no manifest goes.
    names = [manifest(compiled, FUSED, one.id) for one in FUSED.jobs]
    texts = [path.read_text() for path in names]
    assert snakemake(compiled, "--forceall").returncode == 0
    assert [path.read_text() for path in names] == texts


@pytest.mark.slow
def test_a_killed_driver_does_not_block_the_next(compiled: Path) -> None:
    """What a killed Snakemake leaves: a lock, and marks of outputs that it thinks are broken."""
    assert snakemake(compiled, "--until", "model").returncode == 0
    marks = compiled / ".snakemake/incomplete"
    locks = compiled / ".snakemake/locks"
    assert marks.is_dir()
    for one in FUSED.jobs:
        path = str(manifest(compiled, FUSED, one.id))
        (marks / base64.b64encode(path.encode(), b"-_").decode()).touch()
    locks.mkdir(exist_ok=True)
    (locks / "0.output.lock").write_text(str(manifest(compiled, FUSED, "tuned")) + "\n")
    done = snakemake(compiled)
    assert done.returncode == 0, done.stderr
    assert "model" not in started(done)


@pytest.mark.slow
def test_resources_and_store_come_from_plan_and_command_line(tmp_path: Path) -> None:
    said = {"gpus": 1, "mem_mb": 2000, "minutes": 30}
    base = changed(
        job("base", "model"), asked={n: ResourceRequest(v, "", 1) for n, v in said.items()}
    )
    sft = job("sft", "sft", model=["base"])
    made = plan(base, changed(sft, asked={"partition": ResourceRequest("fast", "", 1)}))
    compile_to(tmp_path / "compiled", made)
    done = snakemake(tmp_path / "compiled", "-n", "--config", f"store={tmp_path / 'elsewhere'}")
    text = done.stdout + done.stderr
    assert done.returncode == 0, text
    assert "gpu=1" in text
    assert "mem_mb=2000" in text
    assert "runtime=30" in text
    assert "slurm_partition=fast" in text
    assert str(tmp_path / "elsewhere/objects/sft") in text


@pytest.mark.slow
def test_a_bundle_brings_what_its_snakefile_imports(compiled: Path) -> None:
    """Also where agentc is installed, in whatever version."""
    package = Path(agentc.runtime.__file__).parent
    own = compiled / "packages/agentc/runtime"
    shutil.copytree(package, own, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(package.parent / "__init__.py", own.parent)
    with (own / "placement.py").open("a") as text:
        text.write("\nimport sys\nprint('out of the bundle', file=sys.stderr)\n")
    done = snakemake(compiled, "-n")
    assert done.returncode == 0, done.stderr
    assert "out of the bundle" in done.stderr
    assert started(done) == {"model": 1, "session": 1, "dpo": 1, "report": 1}


@pytest.mark.slow
def test_a_failed_job_stops_only_what_needs_it(tmp_path: Path) -> None:
    broken = changed(job("broken", "sft"), program=("-c", "raise SystemExit(3)"))
    made = plan(
        broken,
        job("behind", "dpo", model=["broken"]),
        job("beside", "expert"),
    )
    compile_to(tmp_path, made)
    done = snakemake(tmp_path)
    assert done.returncode != 0
    assert manifest(tmp_path, made, "beside").exists()
    assert not manifest(tmp_path, made, "broken").exists()
    assert not manifest(tmp_path, made, "behind").exists()


@pytest.mark.slow
def test_jobs_know_where_the_spec_is(tmp_path: Path) -> None:
    """Relative paths in a spec are meant from its folder, wherever it was compiled to."""
    code = (
        "import json, os, pathlib, sys; job = json.load(open(sys.argv[-1]));"
        "pathlib.Path(job['out'], 'where').write_text(os.environ['AGENTC_SPEC_DIR'])"
    )
    made = plan(changed(job("base", "model"), program=("-c", code)))
    compile_to(tmp_path / "out", made, None, tmp_path / "specs")
    done = snakemake(tmp_path / "out")
    assert done.returncode == 0, done.stderr
    where = manifest(tmp_path / "out", made, "base").parent / "data/where"
    assert where.read_text() == str(tmp_path / "specs")

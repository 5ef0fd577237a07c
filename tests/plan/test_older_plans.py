"""A plan that an older agentc compiled still runs: what it says is read, found and meant as today.

`older/2026-11-22` was compiled by commit eaa1b07 from the spec beside it: before backends stood in
groups, before settings of environments were data, and without what plans have had to say since.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from small_experiment import interpreter
from tests.support.patience import PATIENCE_S
from training_job import variables

from agentc.backend_api import SoftwareEnvironment, load_backends
from agentc.cli import main
from agentc.plan.work import find_work, read_plan
from agentc.program.job import DRY_RUN, check_planned
from agentc.runtime.servers.job_leases import program_of
from agentc.runtime.software.lock_text import lock_digest
from agentc.runtime.store.layout import StoreLayout
from agentc.runtime.store.plan_file import PlanFile
from agentc.store.paths import RunFolder
from agentc_backends.environments.server.inside import InsideEnvironment
from agentc_backends.environments.server.program import opener_of
from agentc_backends.software import LIGHT, OPENRLHF, TORCH, XTUNER

FOLDER = Path(__file__).parent / "older" / "2026-11-22"
PLAN = FOLDER / "plan.json"
JOBS: Mapping[str, dict[str, Any]] = {
    job["id"]: PlanFile(PLAN).job(job["id"]) for job in read_plan(PLAN)["jobs"]
}
"""As a wrapper reads them."""
SOFTWARE = {"light": LIGHT, "torch": TORCH, "openrlhf": OPENRLHF, "xtuner": XTUNER}
WORLDS = {
    json.dumps(program_of(lease)): lease
    for job in JOBS.values()
    for lease in job["leases"]
    if lease["role"] == "environment"
}


def test_all_that_its_programs_name_is_there() -> None:
    """Modules, and what words name besides: a class of vLLM's middleware."""
    programs = [job["program"] for job in JOBS.values()]
    programs += [program_of(lease) for job in JOBS.values() for lease in job["leases"]]
    named = {word for words in programs for word in words if word.startswith("agentc_backends.")}
    assert len(named) > 20
    for name in named:
        holder, _, last = name.rpartition(".")
        assert find_spec(name if last.islower() else holder) is not None, name


@pytest.mark.parametrize("lease", WORLDS.values(), ids=lambda lease: lease["backend"])
def test_words_open_the_world_that_was_planned(lease: Mapping[str, Any]) -> None:
    """Settings were words; what the plan expects of the world is what it is today."""
    assert "settings" not in lease
    world = InsideEnvironment(opener_of(program_of(lease)))
    assert lease["expect"]
    check_planned(lease["expect"], asyncio.run(world.meta()))


def config_read(job: Mapping[str, Any], software: SoftwareEnvironment, folder: Path) -> str:
    """What a job's program says when it ends where it has read its config."""
    for part in ("data", "work", "logs"):
        (folder / part).mkdir()
    leases = {
        lease["role"]: {
            "inside": {
                "program": program_of(lease),
                "expect": lease["expect"],
                "account": str(folder / "account.json"),
            }
        }
        if lease["port"] == "inside"
        else {"url": "http://127.0.0.1:9", "token": "none", "model": lease["served_name"]}
        for lease in job["leases"]
    }
    told = {
        **job, "leases": leases, "inputs": {}, "input_objects": {}, "out": str(folder / "data"),
        **{part: str(folder / part) for part in ("work", "logs")},
        **{part: str(folder / f"{part}.json") for part in ("facts", "progress")},
    }  # fmt: skip
    (folder / "job.json").write_text(json.dumps(told))
    done = subprocess.run(
        [interpreter(software, FOLDER / "spec.yaml"), *job["program"], folder / "job.json"],
        env={**variables(), DRY_RUN: "config"}, cwd=folder, capture_output=True, text=True,
        check=False, timeout=PATIENCE_S,
    )  # fmt: skip
    return done.stdout + done.stderr


def one_of_each_program(environments: tuple[str, ...], *, same_version: bool = True) -> list[str]:
    """Jobs whose backend has the version that it had then, or another: what that makes is no longer
    what the keys of the plan mean."""
    table = load_backends().backends
    found = {
        job["program"][1]: name
        for name, job in JOBS.items()
        if job["environment"] in environments
        if (table[job["backend"]].version == job["version"]) is same_version
    }
    return list(found.values())


@pytest.mark.parametrize("name", one_of_each_program(("light",)))
def test_its_config_is_read_whole(tmp_path: Path, name: str) -> None:
    """Keys that were added since then are not there, and none is left over."""
    said = config_read(JOBS[name], SOFTWARE[JOBS[name]["environment"]], tmp_path)
    assert "the whole config was read" in said, said


@pytest.mark.slow
@pytest.mark.parametrize("name", one_of_each_program(("openrlhf", "xtuner")))
def test_its_config_is_read_whole_by_trainers(tmp_path: Path, name: str) -> None:
    test_its_config_is_read_whole(tmp_path, name)


@pytest.mark.parametrize("name", ["after", "results"])
def test_a_program_of_another_version_says_what_to_do(tmp_path: Path, name: str) -> None:
    """One lacks a setting, the other has some that nothing reads any more."""
    assert name in one_of_each_program(("light",), same_version=False)
    said = config_read(JOBS[name], SOFTWARE[JOBS[name]["environment"]], tmp_path)
    assert "if another version of agentc made the plan, compile the spec again" in said


def run_jobs(folder: Path, *names: str) -> StoreLayout:
    """By the wrapper, in software of today: an old lock has no hashes to install it by."""
    plan, layout = folder / "plan" / "plan.json", StoreLayout(folder / "store")
    shutil.copytree(FOLDER, plan.parent)
    document = json.loads(plan.read_text())
    for software in (LIGHT, TORCH):
        document["environments"][software.name]["lock"] = lock_digest(software.text)
        (plan.parent / "environments" / f"{software.name}.txt").write_text(software.text)
    plan.write_text(json.dumps(document))
    for name in names:
        interpreter(SOFTWARE[JOBS[name]["environment"]], FOLDER / "spec.yaml")
        words = ["--plan", str(plan), "--store", str(layout.root), "--job", name]
        done = subprocess.run(
            [sys.executable, "-m", "agentc.runtime.job", *words],
            env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True,
            check=False, timeout=PATIENCE_S,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    work = find_work(read_plan(plan), layout)
    assert [job["id"] for job in work.present] == list(names)
    return layout


def test_a_job_of_it_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And views show the run whose last plan it is."""
    layout = run_jobs(tmp_path, "expert")
    made = layout.data(f"expert/{JOBS['expert']['key']}") / "trajectories.jsonl"
    assert len(made.read_text().splitlines()) == 4
    folder = RunFolder.of_plan(layout, read_plan(PLAN))
    folder.last_plan.parent.mkdir(parents=True)
    shutil.copyfile(PLAN, folder.last_plan)
    for verb in (["status", "older"], ["runs"], ["store", "gc"]):
        assert main([*verb, "--store", str(layout.root)]) == 0, verb
    assert "older: 1 of 24 jobs are done" in capsys.readouterr().out
    main(["diff", "older", str(FOLDER / "spec.yaml"), "--store", str(layout.root)])
    assert "environment: other versions of packages" in capsys.readouterr().out


@pytest.mark.slow
def test_a_training_of_it_runs(tmp_path: Path) -> None:
    """Programs that look at their inputs before the last of their settings."""
    run_jobs(tmp_path, "expert", "base", "sft")

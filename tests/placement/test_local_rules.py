"""Jobs that need no node of their own stay on the submit host, as Snakemake's local rules do, and
plan, preflight and Snakefile agree about which those are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.drafted import changed
from tests.support.patience import PATIENCE_S
from toy_plan import job, plan

from agentc.backend_api import load_backends
from agentc.compilation import compile_spec
from agentc.emit import compile_to
from agentc.kinds.field import Json
from agentc.placement import read_requests, resolve_placement
from agentc.placement.profile import find_profile
from agentc.placement.render import placement_text
from agentc.plan.job import Job, ResourceRequest
from agentc.plan.render import plan_document
from agentc.run.slurm_endings import count_finished

pytest.importorskip("snakemake", reason="needs Snakemake")


def local(made: Job, asked: Json = None) -> Job:
    """A job of seconds; the spec may say where it runs."""
    said = {} if asked is None else {"local": ResourceRequest(asked, "toy.yaml", 7)}
    return changed(made, local=True, asked=said)


PLAN = plan(
    job("long", "rollout"),
    local(job("table", "compare")),
    local(job("queued", "measure"), asked=False),
    local(job("score", "script")),
    job("program", "script"),
    local(job("report", "report")),
)


def staying(profile: Path) -> dict[str, str]:
    """Who says so, by the jobs that stay."""
    found = find_profile(str(profile), {})
    assert found is not None
    settled = resolve_placement(plan_document(PLAN), read_requests(found))
    return {one.label: one.local_source for one in settled if one.local}


@pytest.mark.parametrize(
    ("profile", "stays"),
    [
        ("executor: slurm\n", {"table", "score", "report"}),
        ("executor: slurm\nset-resources: {compare: {local: 0}}\n", {"score", "report"}),
        ("executor: slurm\nset-resources: {measure: {local: 1}}\n",
         {"table", "queued", "score", "report"}),
        ("executor: slurm\ndefault-resources: {local: 0}\n", set()),
        ("cores: 2\n", set()),  # on one machine there is no queue to stay out of
    ],
)  # fmt: skip
def test_who_stays_on_the_submit_host(profile: str, stays: set[str], tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(profile)
    assert set(staying(tmp_path)) == stays


def test_plan_says_where_they_run_and_why(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(
        "executor: slurm\ndefault-resources: {runtime: 60}\nset-resources: {measure: {local: 1}}\n"
    )
    profile = find_profile(str(tmp_path), {})
    assert profile is not None
    shown = placement_text(resolve_placement(plan_document(PLAN), read_requests(profile)), profile)
    where = "    on the submit host, not in the queue"
    assert f"  table, score, report\n{where} (agentc's default)\n" in shown
    assert f"  queued\n{where} (set-resources measure: local)\n" in shown


@pytest.mark.slow
def test_snakemake_submits_the_others_alone(tmp_path: Path) -> None:
    """By the real plugin, whose sbatch is one that takes nothing."""
    compile_to(tmp_path / "compiled", PLAN)
    commands = tmp_path / "bin"
    commands.mkdir()
    for name in ("sbatch", "sacct", "squeue", "scontrol", "scancel", "sinfo"):
        (commands / name).write_text("#!/bin/sh\necho nothing here >&2\nexit 1\n")
    (commands / "sacctmgr").write_text("#!/bin/sh\necho lab\n")
    for command in commands.iterdir():
        command.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "--executor", "slurm", "--jobs", "9", "--keep-going",
         "--slurm-init-seconds-before-status-checks", "1",
         "--default-resources", "slurm_account=lab", "slurm_partition=main", "gpu=2",
         "--config", f"store={tmp_path / 'store'}"],
        cwd=tmp_path / "compiled",
        env={**os.environ, "HOME": str(tmp_path), "PATH": f"{commands}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )  # fmt: skip
    text = done.stdout + done.stderr
    assert done.returncode == 1, text
    by_id = PLAN.by_id()
    published = {
        name
        for name, one in by_id.items()
        if (tmp_path / "store/objects" / one.object / "artifact.json").exists()
    }
    assert published == {"table", "score", "report"}, text
    assert text.count("SLURM sbatch failed") == 3, text
    assert count_finished(text) == 0, "none of those was in the queue"


SPEC = """
agentc: 1
name: stay
models:
  base: {{backend: scratch, architecture: llama, hidden_size: 32, layers: 1, heads: 2, context: 512,
         vocab_size: 320, chat_format: chatml, corpus: expert}}
environments: {{craft: {{backend: textcraft, max_depth: 2, max_expert_steps: 4, distractors: 2}}}}
servers: {{policy: {{backend: transformers}}}}
prompts: {{react: {{instruction: Craft the goal., reply_format: react_inline}}}}
stages:
  expert: {{kind: expert, split: train, limit: 24}}
  one: {{kind: evaluate, model: base, split: validation, decode: {{max_tokens: 64}}}}
  two: {{kind: evaluate, model: base, split: validation, limit: 3, decode: {{max_tokens: 64}}
        {placement}}}
  table: {{kind: compare, of: [one, two]}}
"""


def test_jobs_of_seconds_are_local_and_a_spec_may_say_otherwise(tmp_path: Path) -> None:
    plans = []
    for placement in ("", ", placement: {local: false}"):
        spec = tmp_path / "spec.yaml"
        spec.write_text(SPEC.format(placement=placement))
        compiled = compile_spec(spec, {}, load_backends())
        assert compiled.plan is not None, compiled.diagnostics
        plans.append(compiled.plan)
    usual, asked = plans
    stays = {one.id for one in usual.jobs if one.draft.local}
    assert stays == {"one", "two", "table", "report"}
    assert {one.id for one in usual.jobs if one.draft.leases} & stays == set()
    assert [one.key for one in usual.jobs] == [one.key for one in asked.jobs]
    (tmp_path / "config.yaml").write_text("executor: slurm\n")
    profile = find_profile(str(tmp_path), {})
    assert profile is not None
    settled = resolve_placement(plan_document(asked), read_requests(profile))
    assert {one.label for one in settled if one.local} == {"one", "table", "report"}


FETCHED = """
agentc: 1
name: fetched
models:
  base: {{backend: hf, repo: lab/model-10m, revision: "{commit}", chat_format: chatml{placement}}}
stages:
  data: {{kind: dataset, backend: hf, repo: lab/data, revision: "{commit}", file: talk.json,
         format: messages}}
  sft: {{kind: sft, model: base, data: data, lr: 2e-5, global_batch: 8, max_length: 256,
        max_steps: 1}}
"""


def test_downloads_run_where_the_network_is(tmp_path: Path) -> None:
    """Nodes of many clusters have none."""
    (tmp_path / "config.yaml").write_text("executor: slurm\n")
    profile = find_profile(str(tmp_path), {})
    assert profile is not None
    for placement, stays in (("", {"base"}), (", placement: {local: false}", set())):
        spec = tmp_path / "spec.yaml"
        spec.write_text(FETCHED.format(commit="5" * 40, placement=placement))
        compiled = compile_spec(spec, {}, load_backends())
        assert compiled.plan is not None, compiled.diagnostics
        settled = resolve_placement(plan_document(compiled.plan), read_requests(profile))
        assert {one.label for one in settled if one.local} == {*stays, "data", "report"}

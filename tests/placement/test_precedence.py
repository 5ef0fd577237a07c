"""One precedence: what `agentc plan --profile` says is what Snakemake asks for, by dry runs of the
real Snakemake with the emitted Snakefile and profiles of many kinds."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.drafted import changed
from tests.support.patience import PATIENCE_S
from toy_plan import job, lease, plan

from agentc.backend_api import load_backends
from agentc.compilation import compile_spec
from agentc.emit import compile_to
from agentc.kinds.field import Json
from agentc.placement import Requests, ResolvedRequest, read_requests, resolve_placement
from agentc.placement.precedence import retries_of
from agentc.placement.profile import find_profile
from agentc.placement.render import placement_text
from agentc.plan.job import Job, JobMemory, Plan, ResourceRequest, Resources, Server
from agentc.plan.render import plan_document

pytest.importorskip("snakemake", reason="needs Snakemake")


def asking(name: str, kind: str, served: str | None = None, **asked: Json) -> Job:
    """A job whose spec asks for that, in lines of its own."""
    cpus = asked.get("cpus")
    made = job(
        name,
        kind,
        served=served,
        resources=Resources(cpus=cpus if isinstance(cpus, int) else 1),
    )
    told = {
        each: ResourceRequest(value, "toy.yaml", 10 + n)
        for n, (each, value) in enumerate(asked.items())
    }
    return changed(made, asked=told)


def needing(made: Job, mem_mb: int) -> Job:
    """The same with a model that needs so much memory."""
    return replace(made, memory=JobMemory(gpus=0, device=0, parts={}, mem_mb=mem_mb))


PLAN = plan(
    asking("silent", "expert"),
    asking("loud", "expert", gpus=1, mem_mb=5000),  # of one kind, one asks and one does not
    asking("whole", "sft", cpus=4, gpus=4, gpu_type="a100", mem_mb=64000, minutes=90, retries=2,
           partition="theirs", account="lab", qos="high", constraint="ib"),
    asking("spread", "dpo", gpus=4, gpu_type="h100", nodes=2, cpus=3),
    asking("without", "pair", gpus=0),
    asking("typed", "revise", gpu_type="l4"),
    asking("forced", "mix", gpus=4, nodes=2, cpus=2, mem_mb=9000, minutes=10, partition="spec"),
    asking("by_gres", "search", gpus=4, gpu_type="l4"),
    asking("one", "rollout", served="whole", gpus=1, minutes=30, partition="first"),
    asking("two", "rollout", served="whole", gpus=2, partition="second"),
    needing(asking("hungry", "expert"), 120_000),
    needing(asking("frugal", "expert"), 3000),
    needing(asking("told", "expert", mem_mb=7000), 120_000),
)  # fmt: skip
SERVED = replace(asking("client", "evaluate"), key="c0ffee12" * 3 + "01234567", leases=(
    changed(lease({}), server="server/far", scope="shared"),
))  # fmt: skip
FAR = Server(
    id="server/far",
    key="fab1e345" * 3 + "89abcdef",
    scope="shared",
    replicas=1,
    lease=SERVED.leases[0],
    model=None,
    resources=Resources(cpus=2, gpus=1),
    placement={},
    asked={n: ResourceRequest(v, "servers.far.placement", None) for n, v in
           {"gpus": 1, "gpu_type": "l4", "minutes": 600, "qos": "long"}.items()},
    clients=("client",),
)  # fmt: skip
PLAN = replace(PLAN, jobs=(*PLAN.jobs, SERVED), servers=(FAR,), targets=(*PLAN.targets, "client"))
PROFILES: Mapping[str, str] = {
    "nothing": "keep-going: true\n",
    "usual": """
default-resources:
  gpu: 1
  gpu_model: v100
  mem_mb_per_cpu: 2000
  runtime: 2h
  slurm_partition: usual
  slurm_account: "12"
  cpus_per_task: 7
set-resources:
  mix: {gpu: 1, nodes: 1, mem_mb: 3000, runtime: 5, slurm_partition: forced, constraint: "'a|b'"}
  search: {gres: "gpu:t4:3", qos: low}
  session: {slurm_account: sessions}
  server: {slurm_partition: serving}
set-threads: {mix: 5}
""",
    "memory": """
default-resources:
  mem_mb: 16000
""",
    "by gres": """
default-resources:
  - gres=gpu:2
  - mem=12GB
  - constraint=fast
set-resources:
  - mix:cpus_per_task=6
  - mix:mem_mb_per_cpu=100
  - pair:runtime=60 * attempt
""",
}


def snakemake_asks(directory: Path, profile: Path) -> dict[str, dict[str, str]]:
    """Resources by object, from a dry run."""
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "-n", "-c64", "--workflow-profile", str(profile)],
        cwd=directory,
        env={**os.environ, "HOME": str(directory)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    text = done.stdout + done.stderr
    assert done.returncode == 0, text
    found = {}
    for block in text.split("\nrule "):
        output = re.search(r"output: \S*?(?:objects|(?=servers))/?(\S+?)/(artifact|leases)", block)
        asked = re.search(r"^ *resources: (.*)$", block, re.MULTILINE)
        threads = re.search(r"^ *threads: (\d+)$", block, re.MULTILINE)
        if output and asked:
            pairs = (word.partition("=") for word in asked[1].split(", "))
            made = re.sub(r"^servers/[0-9]+/", "server/", output[1])
            found[made] = {name: value for name, _, value in pairs}
            found[made]["threads"] = threads[1] if threads else "1"
    return found


def as_slurm_plugin_reads(asked: Mapping[str, str]) -> dict[str, str | None]:
    """What the plugin makes of resources (submit_string.py, utils.py of 2.8): the same names as
    `agentc plan` prints."""
    gres = asked.get("gres", "").split(":")
    nodes = int(asked.get("nodes", "1"))
    counted = gres[0] == "gpu"
    assert not (counted and "gpu" in asked), f"--gres and --gpus at once: {asked}"
    gpus = int(gres[-1]) * nodes if counted else int(asked.get("gpu", "0"))
    kind = gres[1] if counted and len(gres) == 3 else asked.get("gpu_model")
    cpus = asked.get("cpus_per_task") or asked["threads"]
    each = asked.get("mem_mb_per_cpu")
    return {
        "gpus": str(gpus),
        "gpu_type": kind,
        "cpus": cpus,
        "mem_mb": str(int(each) * int(cpus)) if each else asked.get("mem_mb"),
        "minutes": asked.get("runtime"),
        "nodes": str(nodes),
        "partition": asked.get("slurm_partition"),
        "account": asked.get("slurm_account"),
        "qos": asked.get("qos"),
        "constraint": asked.get("constraint"),
    }


def requests(folder: Path) -> Requests:
    profile = find_profile(str(folder), {})
    assert profile is not None
    return read_requests(profile)


def said(settled: ResolvedRequest) -> dict[str, Any]:
    return {
        name: None if each.value is None else str(each.value)
        for name, each in settled.placed.items()
        if name != "retries"  # of `agentc run`'s, not Snakemake's
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", PROFILES)
def test_the_plan_says_what_snakemake_asks_for(name: str, tmp_path: Path) -> None:
    profile = tmp_path / "profile"
    profile.mkdir()
    (profile / "config.yaml").write_text(PROFILES[name])
    compile_to(tmp_path / "compiled", PLAN)
    asked = snakemake_asks(tmp_path / "compiled", profile)
    settled = resolve_placement(plan_document(PLAN), requests(profile))
    assert {each.object for each in settled} == set(asked)
    for each in settled:
        wanted = said(each)
        found = as_slurm_plugin_reads(asked[each.object])
        if wanted["mem_mb"] is None or not wanted["mem_mb"].isdigit():
            # Snakemake's own default, by the size of inputs, or none on this machine.
            wanted["mem_mb"] = found["mem_mb"]
        if each.rule == "pair" and name == "by gres":
            assert (wanted["minutes"], found["minutes"]) == ("60 * attempt", "60")
            wanted["minutes"] = found["minutes"]
        assert found == wanted, each.label


def placed(profile: Path, made: Plan = PLAN) -> dict[str, ResolvedRequest]:
    found = resolve_placement(plan_document(made), requests(profile))
    return {str(one["id"]): each for each in found for one in each.jobs}


def test_who_says_what(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(PROFILES["usual"])
    found = placed(tmp_path)
    forced = found["forced"].placed["mem_mb"]
    assert (forced.value, forced.source) == (3000, "set-resources mix: mem_mb")
    lost = [(each.value, each.source) for each in forced.rejected]
    assert lost == [(9000, "toy.yaml:13"), (10000, "default-resources: mem_mb_per_cpu")]
    assert found["whole"].placed["minutes"].source == "toy.yaml:14"
    assert found["silent"].placed["minutes"].value == 120
    assert found["silent"].placed["minutes"].source == "default-resources: runtime"
    assert found["one"].placed["gpus"].value == 2, "the most that a member of the session requests"
    assert found["one"].placed["partition"].value == "first"
    server = found["server/far"].placed
    assert (server["minutes"].value, server["minutes"].source) == (600, "servers.far.placement")
    assert server["partition"].source == "set-resources server: slurm_partition"
    assert found["one"].placed["account"].source == "set-resources session: slurm_account"


def test_a_default_of_memory_is_raised_to_what_a_model_needs(tmp_path: Path) -> None:
    """`set-resources` and the spec hold, and so does a default that goes by the cpu."""
    text = PROFILES["memory"] + "set-resources: {expert: {mem_mb: 9000}}\n"
    wanted = {
        PROFILES["memory"]: {"hungry": 120_000, "frugal": 16000, "told": 7000, "silent": 16000},
        text: dict.fromkeys(("hungry", "frugal", "told", "silent"), 9000),
        PROFILES["usual"]: {"hungry": 14000, "frugal": 14000, "told": 7000},
        PROFILES["nothing"]: {"hungry": None, "frugal": None, "told": 7000},
    }
    for profile, amounts in wanted.items():
        (tmp_path / "config.yaml").write_text(profile)
        found = placed(tmp_path)
        for name, amount in amounts.items():
            assert found[name].placed["mem_mb"].value == amount, (profile, name)


def test_retries_are_the_spec_s_alone(tmp_path: Path) -> None:
    """Snakemake is not told: it would repeat jobs whose programs fail as well."""
    (tmp_path / "config.yaml").write_text("executor: slurm\nretries: 3\n")
    found = placed(tmp_path)
    asked = found["whole"].placed["retries"]
    assert (asked.value, asked.source) == (2, "toy.yaml:15")
    usual = found["silent"].placed["retries"]
    assert (usual.value, usual.source) == (9, "agentc's default")
    assert found["server/far"].placed["retries"].value is None
    document = plan_document(PLAN)
    assert [retries_of([each]) for each in document["jobs"][:3]] == [9, 9, 2]
    shown = placement_text([found["whole"], found["silent"]], requests(tmp_path).profile)
    assert [line.split() for line in shown.splitlines() if line.split()[0] == "retries"] == [
        ["retries", "2", "toy.yaml:15"]
    ]


def test_what_all_jobs_request_is_printed_once_and_what_differs_by_group(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("executor: slurm\ndefault-resources: {runtime: 240}\n")
    found = placed(tmp_path)
    shown = placement_text([found["told"], found["silent"]], requests(tmp_path).profile)
    _, common, *rest = shown.splitlines()
    assert common == "  all queued jobs"
    rows = [line.split() for line in rest]
    assert rows.count(["minutes", "240", "min", "(4.0", "h)", "default-resources:", "runtime"]) == 1
    memory = [row[:3] for row in rows if row[0] == "mem_mb"]
    assert ["mem_mb", "7000", "MiB"] in memory
    assert len(memory) == 2


def test_retries_enter_no_key_and_tell_the_program_nothing(tmp_path: Path) -> None:
    """Of a stage; a server that others share takes none."""
    text = """
agentc: 1
name: keys
models:
  base: {backend: scratch, architecture: llama, hidden_size: 32, layers: 1, heads: 2, context: 512,
         vocab_size: 320, chat_format: chatml, corpus: expert}
environments: {craft: {backend: textcraft, max_depth: 2, max_expert_steps: 4, distractors: 2}}
servers: {policy: {backend: transformers, scope: shared}}
prompts: {react: {instruction: Craft the goal., reply_format: react_inline}}
stages:
  expert: {kind: expert, split: train, limit: 24}
  collect: {kind: rollout, model: base, split: train, decode: {max_tokens: 64}, limit: 2}
"""
    plans = []
    for number, (old, new) in enumerate([
        ("", ""),
        ("limit: 2}", "limit: 2, placement: {retries: 0}}"),
        ("scope: shared", "scope: shared, placement: {retries: 0}"),
    ]):  # fmt: skip
        spec = tmp_path / f"spec{number}.yaml"
        spec.write_text(text.replace(old, new))
        plans.append(compile_spec(spec, {}, load_backends()))
    without, with_them, refused = plans
    assert without.plan is not None, without.diagnostics
    assert with_them.plan is not None, with_them.diagnostics
    for before, after in zip(without.plan.jobs, with_them.plan.jobs, strict=True):
        assert (before.key, before.draft.placement) == (after.key, after.draft.placement)
    asked = {job.id: job.asked for job in with_them.plan.jobs}
    assert asked["collect"]["retries"].value == 0
    assert refused.plan is None
    assert "retries" in str(refused.diagnostics)

"""Memory in plans: what check refuses, what jobs ask for, and that no key knows of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentc.backend_api import (
    Held,
    Logits,
    MemoryQuestion,
    StageBackend,
    TrainerMemory,
    load_backends,
)
from agentc.cli import main
from agentc.compilation import Compilation, compile_spec
from agentc.cost import estimate_plan
from agentc.cost.place import place_of_hardware
from agentc.memory.render import memory_label, memory_text
from agentc.placement import read_requests, resolve_placement
from agentc.placement.profile import find_profile
from agentc.plan.render import plan_document

SPEC = """
agentc: 1
name: fits
models:
  llama: {backend: hf, repo: REPO, revision: f5db02db724555f92da89c216ac04704f23d4590}
environments: {craft: {backend: textcraft}}
servers:
  own: {backend: vllm, max_model_len: 4096}
  far: {backend: vllm, max_model_len: 4096, scope: shared, placement: {gpus: 1FAR}}
prompts: {react: {instruction: Craft the goal.}}
stages:
  expert: {kind: expert, split: train, limit: 64}
  sft: {kind: sft, backend: openrlhf, model: llama, data: expert, lr: 1e-5, global_batch: 64,
        micro_batch: 1, max_length: 4096, processes: 4, dtype: bfloat16,
        placement: {gpus: 4SFT}}
  explore: {kind: rollout, model: sft, server: own, split: train, limit: 64, placement: {gpus: 1}}
  visit: {kind: rollout, model: sft, server: far, split: train, limit: 32}
"""
LLAMA = "meta-llama/Llama-2-7b-chat-hf"


def spec(folder: Path, sft: str = "", far: str = "", repo: str = LLAMA) -> Path:
    path = folder / "spec.yaml"
    path.write_text(SPEC.replace("REPO", repo).replace("SFT", sft).replace("FAR", far))
    return path


def compiled(path: Path) -> Compilation:
    return compile_spec(path, {}, load_backends())


def document(path: Path) -> dict[str, Any]:
    found = compiled(path)
    assert found.plan is not None, found.diagnostics
    return plan_document(found.plan)


def test_jobs_that_hold_a_model_say_what_they_need(tmp_path: Path) -> None:
    plan = document(spec(tmp_path, ", gpu: a100-80gb"))
    jobs = {job["id"]: job for job in plan["jobs"]}
    assert {name for name, job in jobs.items() if "memory" in job} == {"sft", "explore"}
    memory = jobs["sft"]["memory"]
    assert memory["gpus"] == 4
    assert memory["room"] == 80_000_000_000
    assert sum(memory["parts"].values()) == pytest.approx(memory["device"], abs=10)
    (server,) = plan["servers"]
    assert server["memory"]["device"] == jobs["explore"]["memory"]["device"]
    text = memory_text([*plan["jobs"], server])
    assert "of each GPU (a100-80gb has 80.0 for it)" in text
    for width in (50, 80, 130):
        lines = memory_text([*plan["jobs"], server], width).splitlines()
        assert max(map(len, lines)) <= width
        assert not any(line.endswith(tuple("0123456789")) for line in lines), "number and unit"
    assert memory_label(jobs["sft"]).endswith(" of 80.0 GB")
    assert memory_label(jobs["expert"]) == ""


def test_nothing_is_said_of_an_unknown_model(tmp_path: Path) -> None:
    plan = document(spec(tmp_path, ", gpu: t4", repo="acme/unheard-of"))
    assert not any("memory" in job for job in plan["jobs"])


@pytest.mark.parametrize(("sft", "far", "place"), [
    (", gpu: a100-40gb", "", "sft"), (", gpu: 16", "", "sft"), ("", ", gpu: t4", "far")
])  # fmt: skip
def test_check_refuses_what_does_not_fit(tmp_path: Path, sft: str, far: str, place: str) -> None:
    (found,) = compiled(spec(tmp_path, sft, far)).diagnostics
    assert found.code == "AGC660"
    assert found.severity == "error"
    assert found.span is not None
    line = SPEC.splitlines()[found.span.line - 1]
    assert "SFT" in line if place == "sft" else "FAR" in line
    assert "weights" in found.notes[0]
    assert found.fix


def test_the_card_enters_no_key(tmp_path: Path) -> None:
    without, with_it = document(spec(tmp_path)), document(spec(tmp_path, ", gpu: h100-80gb"))
    assert [job["key"] for job in without["jobs"]] == [job["key"] for job in with_it["jobs"]]
    assert "gpu" not in {job["id"]: job for job in with_it["jobs"]}["sft"]["placement"]
    apart = document(spec(tmp_path, far=", gpu: h100-80gb"))
    assert [job["key"] for job in without["jobs"]] == [job["key"] for job in apart["jobs"]]


def test_the_shipped_profile_s_default_is_raised(tmp_path: Path) -> None:
    """16 GB for a training that loads 54 was killed at its start."""
    profile = find_profile("slurm", {})
    assert profile is not None
    plan = document(spec(tmp_path))
    found = {
        str(job["id"]): each.placed["mem_mb"]
        for each in resolve_placement(plan, read_requests(profile))
        for job in each.jobs
    }
    needed = {job["id"]: job["memory"]["mem_mb"] for job in plan["jobs"] if "memory" in job}
    assert found["sft"].value == needed["sft"] > 55_000
    assert found["sft"].source == "what its model needs"
    assert [lost.value for lost in found["sft"].rejected] == [16000]
    assert (found["explore"].value, needed["explore"] < 16000) == (16000, True)
    said = document(spec(tmp_path, ", mem_mb: 1000"))
    (asked,) = (
        each.placed["mem_mb"]
        for each in resolve_placement(said, read_requests(profile))
        if each.jobs[0]["id"] == "sft"
    )
    assert asked.value == 1000, "the spec's word holds"


def test_plan_cost_and_preflight_show_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, store = str(spec(tmp_path, ", gpu: a100-80gb, mem_mb: 20000")), str(tmp_path / "store")
    assert main(["plan", path, "--store", store]) == 0
    assert "memory, expected at most" in capsys.readouterr().out
    assert main(["plan", path, "--store", store, "--json"]) == 0
    jobs = {job["id"]: job for job in json.loads(capsys.readouterr().out)["jobs"]}
    assert jobs["sft"]["memory"]["card"] == "a100-80gb"
    assert main(["plan", "--cost", path, "--store", store]) == 0
    assert " of 80.0 GB" in capsys.readouterr().out
    assert main(["plan", "--preflight", path, "--store", store, "--offline", "--json"]) == 7
    findings = json.loads(capsys.readouterr().out)["findings"]
    found = {(each["check"], each["verdict"]) for each in findings}
    assert {("GPU memory", "ok"), ("GPU memory", "unknown"), ("memory", "problem")} <= found
    staging = next(each["message"] for each in findings if each["check"] == "disk")
    assert "checkpoints of `sft` up to 283 GB" in staging


def test_the_card_says_how_fast_a_gpu_is(tmp_path: Path) -> None:
    """Unless somebody asks for another one."""
    plans = {
        card: document(spec(tmp_path, f", gpu: {card}")) for card in ("a100-80gb", "h100-80gb")
    }
    seconds = {
        card: estimate_plan(plan, None)["sft"].seconds.median for card, plan in plans.items()
    }
    assert seconds["h100-80gb"] < seconds["a100-80gb"]
    typed = estimate_plan(plans["h100-80gb"], None, place=place_of_hardware("4xa100-80gb"))["sft"]
    assert typed.seconds.median == seconds["a100-80gb"]


@pytest.mark.parametrize("answer", ["nothing", "trouble", "its own"])
def test_a_backend_says_itself_what_it_keeps(tmp_path: Path, answer: str) -> None:
    """Where it says nothing, or cannot say, nothing is refused."""

    def memory(question: MemoryQuestion) -> TrainerMemory:
        if answer == "trouble":
            raise ValueError("no idea")
        return TrainerMemory(
            held=(Held(name="everything", width=100),),
            processes=question.integer("processes", 1),
            sequences=1,
            length=1,
            flow=2,
            residual=2,
            logits=Logits(0),
            checkpointing=False,
            loaded=1,
            checkpoint=1,
        )

    table = load_backends()
    stock = table.backends["openrlhf.sft"]
    assert isinstance(stock, StageBackend)
    own = replace(stock, memory=None if answer == "nothing" else memory)
    other = replace(table, backends={**table.backends, stock.id: own})
    found = compile_spec(spec(tmp_path, ", gpu: a100-80gb"), {}, other)
    if answer == "its own":
        (complaint,) = found.diagnostics
        assert "674 everything" in complaint.notes[0]
    else:
        assert found.plan is not None
        jobs = {job.id: job for job in found.plan.jobs}
        assert jobs["sft"].memory is None
        assert jobs["explore"].memory is not None

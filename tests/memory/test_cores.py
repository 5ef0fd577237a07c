"""Cores of jobs on GPUs: as many as their processes keep busy, unless somebody says otherwise; and
time limits, of which preflight says only whether they are likely to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentc.backend_api import load_backends
from agentc.cli import main
from agentc.compilation import compile_spec
from agentc.cost import Estimate, Quantity
from agentc.placement import read_requests, resolve_placement
from agentc.placement.profile import find_profile
from agentc.plan.render import plan_document
from agentc.preflight.requests import check_minutes
from agentc.runtime.provision import threads_of

SPEC = """
agentc: 1
name: cores
models:
  llama: {backend: hf, repo: meta-llama/Llama-2-7b-chat-hf,
          revision: f5db02db724555f92da89c216ac04704f23d4590}
environments: {craft: {backend: textcraft}}
servers:
  own: {backend: vllm, max_model_len: 4096}
  far: {backend: vllm, max_model_len: 4096, scope: shared, placement: {gpus: GPUS}}
prompts: {react: {instruction: Craft the goal.}}
stages:
  expert: {kind: expert, split: train, limit: 64}
  sft: {kind: sft, backend: openrlhf, model: llama, data: expert, lr: 1e-5, epochs: 100,
        global_batch: 64, micro_batch: 1, max_length: 4096, processes: 4, dtype: bfloat16,
        placement: {gpus: GPUSSFT}}
  explore: {kind: rollout, model: sft, server: own, split: train, limit: 64,
            placement: {gpus: ACTING}}
  visit: {kind: rollout, model: sft, server: far, split: train, limit: 32}
"""


def document(folder: Path, *, gpus: int = 4, acting: int = 1, sft: str = "") -> dict[str, Any]:
    path = folder / "spec.yaml"
    text = SPEC.replace("GPUSSFT", f"{gpus}{sft}").replace("ACTING", str(acting))
    path.write_text(text.replace("GPUS", str(min(gpus, 1))))
    found = compile_spec(path, {}, load_backends())
    assert found.plan is not None, found.diagnostics
    return plan_document(found.plan)


def cpus(document: dict[str, Any]) -> dict[str, int]:
    found = {job["id"]: job["resources"]["cpus"] for job in document["jobs"]}
    (far,) = document["servers"]
    return found | {"far": far["resources"]["cpus"]}


def test_jobs_on_gpus_get_the_cores_that_their_processes_keep_busy(tmp_path: Path) -> None:
    """Two for each training process; three processes of vLLM on one GPU, and the job's own."""
    found = cpus(document(tmp_path))
    assert (found["sft"], found["explore"], found["far"]) == (8, 4, 3)
    assert (found["expert"], found["visit"]) == (1, 1), "nothing of theirs is on a GPU"


def test_each_copy_of_a_server_has_its_own(tmp_path: Path) -> None:
    assert cpus(document(tmp_path, acting=8))["explore"] == 8 * 3 + 1


def test_without_gpus_the_number_is_fixed(tmp_path: Path) -> None:
    """It is the number of threads, on which the last digits of a result depend."""
    found = cpus(document(tmp_path, gpus=0, acting=0))
    assert (found["sft"], found["explore"], found["far"]) == (4, 2, 2)


def test_what_the_spec_or_a_profile_says_holds(tmp_path: Path) -> None:
    said = document(tmp_path, sft=", cpus: 5")
    assert cpus(said)["sft"] == 5
    profile = tmp_path / "config.yaml"
    profile.write_text("executor: slurm\ndefault-resources: {cpus_per_task: 6}\n")
    found = find_profile(str(tmp_path), {})
    assert found is not None

    def asked(requests: Any) -> dict[str, Any]:
        settled = resolve_placement(document(tmp_path), requests)
        return {each.jobs[0]["id"]: each.placed["cpus"] for each in settled}

    assert asked(read_requests(found))["sft"].value == 6
    alone = asked(None)
    assert (alone["sft"].value, alone["sft"].source) == (8, "what its processes keep busy")
    assert alone["expert"].source == "agentc's default"


def test_no_key_knows_of_it(tmp_path: Path) -> None:
    keys = [
        [job["key"] for job in document(tmp_path, sft=sft)["jobs"]]
        for sft in ("", ", cpus: 5", ", cpus: 5, minutes: 3")
    ]
    assert keys[0] == keys[1] == keys[2]


def test_processes_on_gpus_share_the_cores() -> None:
    on_gpus = {"resources": {"cpus": 8, "gpus": 4}, "processes": 4}
    assert threads_of(on_gpus) == 2
    assert threads_of({**on_gpus, "resources": {"cpus": 2, "gpus": 4}}) == 1
    assert threads_of({**on_gpus, "placement": {"threads": 3}}) == 3
    assert threads_of({"resources": {"cpus": 8, "gpus": 0}, "processes": 4}) == 8
    assert threads_of({}) == 1


@pytest.mark.parametrize(
    ("median", "spread", "like", "told"),
    [
        (70 * 60, 0.0, 0, True),
        (50 * 60, 1.0, 0, False),  # a prior's band is wide
        (50 * 60, 1.0, 3, True),
        (50 * 60, 0.1, 3, False),
    ],
)
def test_a_limit_that_will_not_do_is_told_of(
    median: float, spread: float, like: int, told: bool, tmp_path: Path
) -> None:
    plan = document(tmp_path, sft=", minutes: 60")
    estimate = Estimate(
        id="sft",
        stage="sft",
        kind="sft",
        object="sft/0",
        state="run",
        seconds=Quantity(median, spread),
        tokens=Quantity(1),
        disk=Quantity(1),
        cpus=8,
        gpus=4,
        basis="3 like jobs" if like else "prior",
        like=like,
    )
    found = list(check_minutes(resolve_placement(plan, None), {"sft": estimate}))
    assert len(found) == told
    if told:
        assert "60 min (spec.yaml:" in found[0].message
        assert found[0].fix is not None
        wanted = int(found[0].fix.partition("minutes: ")[2].partition("}")[0])
        assert wanted * 60 >= estimate.seconds.high


def test_preflight_tells_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document(tmp_path, sft=", minutes: 1")
    spec, store = str(tmp_path / "spec.yaml"), str(tmp_path / "store")
    main(["plan", "--preflight", spec, "--store", store, "--offline", "--json"])
    findings = json.loads(capsys.readouterr().out)["findings"]
    (time,) = (each for each in findings if each["check"] == "time")
    assert (time["verdict"], time["about"]) == ("warning", ["sft"])

"""A published run of CHAI behind a server that ranks candidates by its critic."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from safetensors.torch import load_file
from tests.torch.online_rl.encoders import read_with, scratch_encoder
from tests.torch.online_rl.test_run import ITERATIONS, PROGRAM, run_job
from tests.torch.online_rl.wanderer import wandering_model
from tests.torch.trl.programs import run_module, run_program

from agentc.program.job import JobConfig, read_rows
from agentc_backends.agents.common.connect import AgentGymWorld, ChatPolicy
from agentc_backends.agents.common.episode import Policy, read_rules, split_tasks, task_attempts
from agentc_backends.agents.rollout.play import TurnRules, play
from agentc_backends.data.models.checkpoint import load_model
from agentc_backends.engine.model import end_tokens, load_tokenizer
from agentc_backends.environments.server.inside import InsideEnvironment
from agentc_backends.environments.server.program import opener_of
from agentc_backends.openai_api.chat_text import ChatText
from agentc_backends.trainers.online_rl.publishing import read_critic
from agentc_backends.trainers.online_rl.sampling import Decode, LivePolicy, Sampler

sys.path.append(str(Path(__file__).parents[2] / "backends" / "servers"))

from conformance import Target, started

SERVER = "agentc_backends.servers.transformers.job_serve"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wandering_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module", params=["body", "encoder"])
def chai(
    request: pytest.FixtureRequest, model: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Runs whose critics read with a copy of the policy's body, and with an encoder."""
    folder = tmp_path_factory.mktemp(request.param)
    job = run_job(folder / "run", model, "chai")
    if request.param == "encoder":
        read_with(job, scratch_encoder(folder, "left right look door room cellar"))
    status, _, errors = run_program(job, PROGRAM)
    assert status == 0, errors
    return job.parent


def test_evaluations_are_those_behind_a_server_that_reranks(chai: Path, tmp_path: Path) -> None:
    """It reads the critic out of the run, and says reply for reply what the job said."""
    root = chai
    job = json.loads((root / "job.json").read_text())
    config, published = job["config"], root / "data"
    told = config["evaluate"]

    async def played(policy: Policy) -> list[str]:
        inside = job["leases"]["environment"]["inside"]
        world = AgentGymWorld(InsideEnvironment(opener_of(inside["program"], inside["settings"])))
        meta = await world.meta()
        read = JobConfig(config)
        rules = replace(read_rules(read, meta), split=told["split"])
        tasks = split_tasks(meta, told["split"], told["limit"])
        attempts = task_attempts(
            tasks, told["attempts"], seed=told["seed"], prompt_seed=0, prompt_per_attempt=True
        )
        rows = [play(rules, read.read_as(TurnRules), each, policy, world) for each in attempts]
        return sorted(map(_plain, await asyncio.gather(*rows)))

    decode = {**config["decode"], "temperature": told["temperature"]}

    async def served(target: Target) -> list[str]:
        async with target.client() as chat:
            return await played(ChatPolicy(chat, decode))

    async def replies(target: Target, **more: Any) -> list[str]:
        body = target.chat_body(seed=5, temperature=1, **more)
        answer = await target.raw("POST", "/v1/chat/completions", body)
        return [each["message"]["content"] for each in answer.json()["choices"]]

    async def of_first_candidates() -> list[str]:
        model, tokenizer = load_model(published).eval(), load_tokenizer(str(published))
        drawn = Decode(
            temperature=1.0, max_tokens=decode["max_tokens"], ends=end_tokens(model, tokenizer)
        )
        chat = ChatText(str(published), tokenizer)
        policy = LivePolicy(Sampler(model), chat, tokenizer, drawn, 256)
        async with policy.acting():
            return await played(policy)

    last = sorted(
        _plain({name: value for name, value in row.items() if name != "iteration"})
        for row in read_rows(published / "evaluations.jsonl")
        if row["iteration"] == ITERATIONS
    )
    server = ["--model", str(published), "--rerank-candidates", "3"]
    with started(sys.executable, SERVER, server, tmp_path) as (url, _):
        facts = json.loads((tmp_path / "ready.json").read_text())
        assert facts["rerank"]["candidates"] == 3
        reads = facts["rerank"]["reads"]
        assert (reads["memory"], reads.get("encoder")) == ("last", config["learner"].get("encoder"))
        target = Target(url, "test-token", "policy", str(published), 256)
        assert asyncio.run(served(target)) == last
        one, several = (asyncio.run(replies(target, n=number)) for number in (1, 16))
        assert len(one) == 1
        assert several[:1] == one  # each of several has candidates of its own
        assert len(set(several)) > 1
    assert asyncio.run(of_first_candidates()) != last


def test_either_critic_of_a_run_can_be_read(chai: Path, tmp_path: Path) -> None:
    root = chai
    found = []
    for rank_with, file in (("target", "target"), ("online", "critic")):
        critic, told = read_critic(root / "data", rank_with)  # type: ignore[arg-type]
        written = load_file(root / "data" / "state" / f"{file}.safetensors")
        for name, each in critic.named_parameters():
            assert torch.equal(each, written[name])
            assert not each.requires_grad
        assert sorted(set(told) - {"encoder"}) == ["memory", "prompt"]
        found.append(critic.q1[0].weight)
    assert not torch.equal(*found)
    # Of an encoder the run has the weights in its critics, and what else it takes to read.
    reads = [path.name for path in (root / "data" / "state" / "encoder").glob("*")]
    assert ("config.json" in reads, "tokenizer.json" in reads) == (("encoder" in told),) * 2
    assert not any(name.endswith(".safetensors") for name in reads)
    shutil.copytree(root / "data", tmp_path / "data")
    if "encoder" in told:
        (tmp_path / "data" / "run.json").write_text("{}")  # as before encoders were published
        with pytest.raises(ValueError, match="was not published; make it again"):
            read_critic(tmp_path / "data", "target")
    shutil.rmtree(tmp_path / "data" / "state")
    with pytest.raises(ValueError, match="publish_state: true"):
        read_critic(tmp_path / "data", "target")


def test_a_model_without_a_critic_is_not_served_so(model: Path, tmp_path: Path) -> None:
    words = ["--model", str(model), "--rerank-candidates", "3"]
    status, _, errors = run_module(SERVER, *words, "--ready-file", str(tmp_path / "ready.json"))
    assert status == 2
    assert "has no critic to rank candidates with" in errors
    assert not (tmp_path / "ready.json").exists()


def _plain(row: Mapping[str, Any]) -> str:
    return json.dumps(row, sort_keys=True)

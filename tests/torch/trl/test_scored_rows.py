"""Trained by TRL, served by the embedded server: both give the same tokens the same
log-probabilities, and a rollout warns where they do not."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agentc.program.artifact_files import SCORED_FILE

pytest.importorskip("torch")

import torch
from safetensors.torch import load_file, save_file
from tests.backends.servers.conformance import started
from tests.torch.trl.jobs import (
    facts,
    make_job,
    pairs,
    run_here,
    small_model,
    trainer_job,
    trajectories,
    write_rows,
)
from tests.torch.trl.programs import run_program

from agentc.program.job import Job
from agentc.runtime.store.digests import content_digest
from agentc_backends.agents.common.agreement import LARGEST_MEAN, compare_with_trainer
from agentc_backends.agents.common.connect import ChatPolicy
from agentc_backends.clients.leases import chat_client
from agentc_backends.data.models import job_path
from agentc_backends.data.models.scored_rows import read_scored_rows

SERVER = "agentc_backends.servers.transformers.job_serve"
DECODE = {"temperature": 1.0, "top_p": 1.0, "max_tokens": 8, "stop": []}
SETTINGS: dict[str, Any] = {"epochs": 4}
Trained = Callable[..., Path]
Compared = Callable[[Path], Mapping[str, Any]]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trained]:
    """Trains with settings (once for each) and gives the staging directory."""
    root = tmp_path_factory.mktemp("inputs")
    inputs = {
        "sft": write_rows(root / "sft", "trajectories.jsonl", trajectories(20)),
        "dpo": write_rows(root / "dpo", "pairs.jsonl", pairs(20)),
    }
    model = small_model(root / "model", initialisation="induction")
    done: dict[str, Path] = {}

    def train(kind: str, **settings: Any) -> Path:
        name = json.dumps([kind, settings], sort_keys=True)
        if name not in done:
            done[name] = tmp_path_factory.mktemp(kind)
            given = {"model": [model], "data": [inputs[kind]]}
            job = trainer_job(done[name], kind, given, **{**SETTINGS, **settings})
            if settings.get("processes", 1) == 1:
                run_here(job)
            else:
                status, out, err = run_program(job)
                assert status == 0, out + err
        return done[name]

    yield train
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


@pytest.fixture(scope="module")
def serve(
    trained: Trained, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], str]]:
    """The address of a server that computes in this type; the first model it serves is reloaded."""
    with_one: dict[str, Any] = {}

    def url_of(dtype: str) -> str:
        if dtype not in with_one:
            model = str(trained("sft") / "data")
            arguments = ["--model", model, "--dtype", dtype]
            server = started(sys.executable, SERVER, arguments, tmp_path_factory.mktemp("server"))
            with_one[dtype] = (server, server.__enter__()[0])
        url: str = with_one[dtype][1]
        return url

    yield url_of
    for server, _ in with_one.values():
        server.__exit__(None, None, None)


@pytest.fixture
def compared(serve: Callable[[str], str], tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """The facts of a job that has compared a checkpoint with a server of it."""

    def compare(checkpoint: Path, dtype: str = "float32") -> dict[str, Any]:
        job = Job(make_job(tmp_path, "rollout", {}, {"model": [checkpoint]}))
        lease = {"url": serve(dtype), "token": "test-token", "model": "policy", "log": "log"}
        job.leases["policy"] = lease

        async def ask() -> None:
            async with chat_client(lease, concurrency=4) as chat:
                await chat._transport.call("POST", "/reload", {"path": str(checkpoint)})
                await compare_with_trainer(job, ChatPolicy(chat, DECODE))

        asyncio.run(ask())
        return facts(tmp_path)

    return compare


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("sft", {}),
        ("dpo", {}),
        ("sft", {"lora": {"rank": 4, "dropout": 0.2}}),
        ("sft", {"sharding": "full"}),
        ("sft", {"sharding": "optimizer", "lora": {"rank": 4}}),
    ],
)
def test_a_server_of_the_checkpoint_agrees(
    kind: str, settings: dict[str, Any], trained: Trained, compared: Any
) -> None:
    found = compared(trained(kind, **settings) / "data")
    agreement = found["log_prob_agreement"]
    assert (agreement["rows"], agreement["trainer_dtype"]) == (8, "float32")
    assert agreement["tokens"] > 8
    assert agreement["max"] < 1e-4
    assert (agreement["prompts"], agreement["other_prompts"]) == (8, 0)
    assert "warnings" not in found


@pytest.mark.parametrize("served", ["float32", "bfloat16"])
def test_rounding_to_16_bits_is_no_reason_to_warn(
    served: str, trained: Trained, compared: Any
) -> None:
    found = compared(trained("sft", dtype="bfloat16", save_dtype="bfloat16") / "data", served)
    agreement = found["log_prob_agreement"]
    assert agreement["trainer_dtype"] == "bfloat16"
    assert 1e-4 < agreement["mean"] < LARGEST_MEAN
    assert "warnings" not in found


def test_a_checkpoint_that_comes_back_by_its_path_is_compared(
    trained: Trained, compared: Any, tmp_path: Path
) -> None:
    source = trained("sft") / "data"
    config = {"path": str(source), "digest": content_digest(source), "chat_format": "tokenizer"}
    job = make_job(tmp_path / "path", "model", config, {})
    job_path.import_model(Job(job))
    adopted = tmp_path / "path" / "data"
    assert read_scored_rows(adopted) == read_scored_rows(source)
    assert compared(adopted)["log_prob_agreement"]["max"] < 1e-4


def test_other_weights_are_warned_of(trained: Trained, compared: Any, tmp_path: Path) -> None:
    changed = tmp_path / "changed"
    shutil.copytree(trained("sft") / "data", changed)
    weights = load_file(changed / "model.safetensors")
    generator = torch.Generator().manual_seed(0)
    for name, value in weights.items():
        weights[name] = value + 0.02 * torch.randn(value.shape, generator=generator)
    save_file(weights, changed / "model.safetensors", {"format": "pt"})
    found = compared(changed)
    assert found["log_prob_agreement"]["mean"] > LARGEST_MEAN
    (said,) = found["warnings"]
    assert "not quite the policy that was trained" in said


def test_another_position_code_is_warned_of(
    trained: Trained, compared: Any, tmp_path: Path
) -> None:
    changed = tmp_path / "changed"
    shutil.copytree(trained("sft") / "data", changed)
    path = changed / "config.json"
    config = json.loads(path.read_text())
    config["rope_parameters"]["rope_theta"] /= 100
    path.write_text(json.dumps(config))
    found = compared(changed)
    assert found["log_prob_agreement"]["mean"] > LARGEST_MEAN
    assert "position code" in found["warnings"][0]


def test_another_chat_template_is_warned_of(
    trained: Trained, compared: Any, tmp_path: Path
) -> None:
    changed = tmp_path / "changed"
    shutil.copytree(trained("sft") / "data", changed)
    template = changed / "chat_template.jinja"
    template.write_text("Be brief. " + template.read_text())
    (changed / "agentc_chat.json").write_text('{"chat_format": "tokenizer"}')
    found = compared(changed)
    assert found["log_prob_agreement"]["other_prompts"] == 8
    assert found["log_prob_agreement"]["max"] < 1e-4
    (said,) = found["warnings"]
    assert "other tokens of 8 of 8 prompts" in said


def test_the_rows_are_those_that_were_trained_on(trained: Trained) -> None:
    scored = read_scored_rows(trained("sft") / "data")
    assert scored is not None
    values = [value for row in scored.rows for value in row.log_probs if value is not None]
    assert all(value <= 0 for value in values)
    assert all(row.log_probs.count(None) > 1 for row in scored.rows)


def test_the_same_training_leaves_the_same_file(
    trained: Trained, tmp_path_factory: pytest.TempPathFactory
) -> None:
    first = trained("sft")
    again = trained("sft", micro_batch=2)  # the same result, computed a second time
    texts = [(root / "data" / SCORED_FILE).read_text() for root in (first, again)]
    rows = [json.loads(text)["rows"] for text in texts]
    assert [row["ids"] for row in rows[0]] == [row["ids"] for row in rows[1]]
    for one, other in zip(*rows, strict=True):
        assert one["log_probs"][1:] == pytest.approx(other["log_probs"][1:], abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("sharding", ["none", "full"])
def test_several_processes_leave_one_file(sharding: str, trained: Trained, compared: Any) -> None:
    found = compared(trained("sft", processes=2, sharding=sharding) / "data")
    assert found["log_prob_agreement"]["rows"] == 8
    assert found["log_prob_agreement"]["max"] < 1e-4

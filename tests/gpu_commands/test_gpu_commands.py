"""Every job of a shipped spec that asks for GPUs, without one: its command line goes through the
pinned package's own parser, and its engine's or trainer's configuration is built beside the model
that the published config.json describes. Each library runs in its own software stack.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.gpu_commands import jobs
from tests.gpu_commands.jobs import ROOT, Serving, Training
from tests.support.patience import PATIENCE_S

from agentc.backend_api import Software
from agentc_backends.software import OPENRLHF, TORCH, VLLM, XTUNER
from agentc_backends.trainers.openrlhf.backend import DPO, SFT

WEIGHTS = {
    "Llama-2-7b-chat-hf": 6_738_415_616,
    "Llama-3.1-8B-Instruct": 8_030_261_248,
    "Llama-3.1-70B-Instruct": 70_553_706_496,
    "Mistral-7B-Instruct-v0.2": 7_241_732_096,
    "Qwen2-VL-72B-Instruct": 73_405_560_320,
}
"""As their model cards and safetensors indices count them."""
FILLED = {"{served_name}": "policy", "{host}": "127.0.0.1", "{port}": "8000"}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return jobs.model_folders(tmp_path_factory.mktemp("models"))


def answers(
    software: Software, program: str, asked: Sequence[Any], mark: str = "{"
) -> list[dict[str, Any]]:
    """What a program of this folder says of each thing asked, in the Python of that software."""
    python = jobs.interpreter(software)
    paths = os.pathsep.join(str(ROOT / name) for name in ("compiler", "backends"))
    done = subprocess.run(
        [python, str(jobs.HERE / f"{program}.py")],
        input=json.dumps(asked),
        env={**os.environ, "PYTHONPATH": paths, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [line for line in done.stdout.splitlines() if line.startswith(mark)]
    found = [json.loads(line[line.index("{") :]) for line in lines]
    assert len(found) == len(asked), done.stdout[-3000:]
    return found


def distinct(trainings: Sequence[Training]) -> list[Training]:
    """One of those that are alike but for their names."""
    found = {
        json.dumps([each.backend, each.model, each.config, {**each.placement}]): each
        for each in trainings
    }
    return list(found.values())


def test_published_models_and_specs_belong_together() -> None:
    """No spec works on a model whose config.json is not kept here, and none is kept for nothing."""
    used = {each.model for each in jobs.servings()}
    for backend in ("trl.sft", "trl.dpo", "xtuner.sft"):
        found = jobs.trainings(backend)
        assert found, backend
        used |= {each.model for each in found}
    kept = {path.stem for path in (jobs.HERE / "models").glob("*.json")}
    assert used - set(jobs.made_models()) == set(WEIGHTS) == kept


# One process tells of all: these libraries take longer to import than to be asked.
@pytest.mark.slow
def test_trl_builds_its_configuration_of_each_training(models: Path) -> None:
    made = [jobs.trainings(backend) for backend in ("trl.sft", "trl.dpo", "trl.critic")]
    assert all(made)
    # A head is trained by transformers' own trainer, which knows no longest row.
    rows = [each for found in made for each in found if "max_length" in each.config["arguments"]]
    trainings = distinct(rows)
    found = answers(TORCH, "trl_accepts", [each.record(models) for each in trainings])
    for training, facts in zip(trainings, found, strict=True):
        check(training, facts)
        assert facts["length"] == training.config["mask"]["max_length"]
        assert facts["optimizer"] == "adamw_torch_fused"


@pytest.mark.slow
def test_openrlhf_builds_its_configuration_of_each_training(models: Path) -> None:
    """`backend: openrlhf` on each training of a shipped spec, of which one alone names it."""
    trainings = distinct([each for backend in (SFT, DPO) for each in jobs.trainings_by(backend)])
    assert {each.backend for each in trainings} == {SFT.id, DPO.id}
    found = answers(OPENRLHF, "openrlhf_accepts", [each.record(models) for each in trainings])
    for training, facts in zip(trainings, found, strict=True):
        check(training, facts)
        assert facts["zero"] == (3 if training.sharding == "full" else 2), training.name


@pytest.mark.slow
def test_xtuner_builds_its_configuration_of_each_training(models: Path) -> None:
    trainings = distinct(jobs.trainings("xtuner.sft"))
    found = answers(XTUNER, "xtuner_accepts", [each.record(models) for each in trainings])
    for training, facts in zip(trainings, found, strict=True):
        check(training, facts)
        assert facts["zero"] == training.config["settings"]["zero_stage"] == 2
        assert facts["length"] == training.config["mask"]["max_length"]


def check(training: Training, facts: Mapping[str, Any]) -> None:
    """What holds of every trainer."""
    made = jobs.made_models().get(training.model)
    expected = WEIGHTS[training.model] if made is None else jobs.weights_of(made)
    assert facts["weights"] == expected, training.name
    assert facts["trained"] == facts["weights"]
    assert facts["context"] == jobs.config_of(training.model)["max_position_embeddings"]
    assert training.config["mask"]["max_length"] <= facts["context"]
    assert facts["batch"] * training.processes == training.global_batch
    assert facts["attention"] == "sdpa"
    assert facts["checkpointing"] is True
    assert facts["bf16"] is True


def sees(model: str) -> bool:
    return "vision_config" in jobs.config_of(model)


def words_of(serving: Serving, models: Path) -> tuple[str, ...]:
    """The words after `serve`, with placeholders filled in, on one device."""
    filled = {**FILLED, "{model}": str(models / serving.model)}
    start = serving.program.index("serve") + 1
    words = [filled.get(word, word) for word in serving.program[start:]]
    place = words.index("--tensor-parallel-size") + 1
    assert words[place] == str(serving.gpus)
    return (*words[:place], "1", *words[place + 1 :])  # a CPU has no second device


def test_servers_on_gpus_run_the_build_for_them_and_none_of_what_is_for_cpus() -> None:
    for serving in jobs.servings():
        assert serving.software == "vllm-cuda", serving.name
        assert "--no-enable-chunked-prefill" not in serving.program, serving.name


@pytest.mark.slow
@pytest.mark.vllm
def test_vllm_builds_its_engines_configuration_of_each_server(models: Path) -> None:
    """By the CPU build, whose parser and engine arguments are the same files as the CUDA build's;
    weights of one device. It has no torchvision, which Qwen2-VL needs: its server is told what
    another one is."""
    commands = {words_of(each, models): each for each in jobs.servings()}
    see = {words for words, each in commands.items() if sees(each.model)}
    commands = {words: each for words, each in commands.items() if words not in see}
    assert {words[1:] for words in see} <= {words[1:] for words in commands}
    found = answers(VLLM, "vllm_accepts", list(commands), mark="facts ")
    for words, facts in zip(commands, found, strict=True):
        assert facts["unknown"] == [], words
        given = dict(pairwise(words))
        model = jobs.config_of(commands[words].model)
        context = int(given.get("--max-model-len", model["max_position_embeddings"]))
        assert facts["context"] == context
        assert facts["devices"] == 1
        assert facts["share"] == float(given["--gpu-memory-utilization"])
        assert facts["prefixes"] is True
        assert facts["load"] == "safetensors"
        assert facts["generation"] == "vllm"
        assert facts["code"] is False
        dtype = given["--dtype"]
        assert facts["dtype"] == f"torch.{model['torch_dtype'] if dtype == 'auto' else dtype}"
        # No pass of tokens is as long as a context of 131072: replies under way would wait for it.
        assert facts["chunked"] is True
        assert facts["batch"] <= max(8192, context if context <= 8192 else 0)

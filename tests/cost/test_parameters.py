"""Sizes of models and speeds of machines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentc.cost.hardware import GPUS, gpu_named, machine_of
from agentc.cost.parameters import PUBLISHED, shape_of_name, shape_of_settings

QUICKSTART = {
    "hidden_size": 128,
    "layers": 2,
    "heads": 2,
    "kv_heads": 2,
    "intermediate_size": 256,
    "vocab_size": 768,
    "tie_embeddings": True,
}


def test_a_new_model_is_counted() -> None:
    # What torch counted of the quickstart's model.
    assert shape_of_settings(QUICKSTART).parameters.median == 426624
    assert not shape_of_settings(QUICKSTART).trained


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("meta-llama/Llama-2-7b-chat-hf", "llama-2-7b"),
        ("meta-llama/Meta-Llama-3-8B-Instruct", "llama-3-8b"),
        ("Qwen/Qwen2.5-1.5B-Instruct", "qwen2.5-1.5b"),
        ("openai-community/gpt2", "gpt2"),
        ("openai-community/gpt2-medium", "gpt2-medium"),
        ("./models/llama-2-7b/", "llama-2-7b"),
    ],
)
def test_published_counts_are_exact(name: str, published: str) -> None:
    found = shape_of_name(name)
    assert (found.parameters.median, found.parameters.spread) == (PUBLISHED[published], 0.0)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("someone/agent-13b-v2", 13e9),
        ("someone/tiny-350M", 350e6),
        ("someone/wise-1.8b-chat", 1.8e9),
        ("someone/moe-8x7b", 46e9),
    ],
)
def test_a_count_in_the_name_is_rounded(name: str, count: float) -> None:
    found = shape_of_name(name).parameters
    assert found.median == pytest.approx(count, rel=0.05)
    assert 0 < found.spread < shape_of_name("someone/mystery").parameters.spread


def test_version_numbers_are_no_counts() -> None:
    assert shape_of_name("someone/llama2.7beta").parameters.spread > 0.5


@pytest.mark.parametrize(
    ("product", "name"),
    [
        ("NVIDIA A100-SXM4-80GB", "a100"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA H200", "h200"),
        ("NVIDIA L4", "l4"),
        ("NVIDIA L40S", "l40s"),
        ("Tesla V100-SXM2-32GB", "v100"),
        ("NVIDIA GeForce RTX 4090", "rtx4090"),
        ("NVIDIA RTX A6000", "a6000"),
        ("Some Other Card", None),
    ],
)
def test_products_are_recognised(product: str, name: str | None) -> None:
    assert gpu_named(product) == name
    assert name is None or name in GPUS


def test_a_machine_counts_what_the_job_held() -> None:
    hardware = {"cpus": 64, "gpus": ["NVIDIA H100 80GB HBM3"] * 8}
    assert machine_of(hardware, 4, 2).count == 2
    assert machine_of(hardware, 4, 0).kind == "cpu"


def test_settings_of_shipped_models_are_read(repository: Path, planned) -> None:  # type: ignore[no-untyped-def]
    job = next(j for j in planned("quickstart")["jobs"] if j["kind"] == "model")
    assert shape_of_settings(json.loads(json.dumps(job["config"]))).parameters.median == 426624

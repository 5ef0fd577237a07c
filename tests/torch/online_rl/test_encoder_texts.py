"""An encoder of texts as its job makes it, what it reads of a policy's tokens, and a run of RL
whose critic reads with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch
from tests.torch.online_rl.encoders import read_with, scratch_encoder
from tests.torch.online_rl.test_run import PROGRAM, contract, run_job
from tests.torch.trl.jobs import small_model
from tests.torch.trl.programs import run_program
from transformers import AutoModel, AutoTokenizer

from agentc.program.job import read_rows
from agentc.runtime.contracts.artifacts import check_artifact
from agentc_backends.engine.model import load_tokenizer
from agentc_backends.trainers.online_rl.readers import Text, load_encoder, whole_text

TEXT = "a dark kitchen, and old cellar stairs that go down and down to another door"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = scratch_encoder(tmp_path_factory.mktemp("encoder"), TEXT)
    check_artifact("TextEncoder", found, {}, {}, {})
    return found


def test_it_reads_the_words_of_a_conversation(model: Path, encoder: Path) -> None:
    """What stands for a text is what the library's own tokenizer and model make of its words."""
    policy = load_tokenizer(str(model))
    asked = [{"role": "user", "content": TEXT}]
    prompt = policy.apply_chat_template(asked, tokenize=True, return_dict=False)
    reader = load_encoder(encoder, policy, "pooler", 32, seed=0)
    with torch.no_grad():
        (found,) = reader([whole_text(Text(tuple(prompt)))])
    words = policy.decode(prompt, skip_special_tokens=True)
    tokenizer, other = (
        AutoTokenizer.from_pretrained(str(encoder)),
        AutoModel.from_pretrained(str(encoder)),
    )
    tokenizer.truncation_side = "left"
    inputs = tokenizer(words, truncation=True, max_length=32, return_tensors="pt")
    assert inputs["input_ids"][0, 0] == tokenizer.cls_token_id
    assert tokenizer.decode(inputs["input_ids"][0]).rstrip().endswith("door\n</s>")
    with torch.no_grad():
        (wanted,) = other(**inputs).pooler_output
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-6)


def test_what_an_encoder_cannot_read_is_told(model: Path, encoder: Path) -> None:
    with pytest.raises(ValueError, match=r"32 tokens at most; set `critic\.max_length`"):
        load_encoder(encoder, load_tokenizer(str(model)), "mean", 33, seed=0)


def test_a_run_whose_critic_reads_with_an_encoder(
    model: Path, encoder: Path, tmp_path: Path
) -> None:
    path = run_job(tmp_path / "run", model, "archer", 2)
    read_with(path, encoder)
    status, _, errors = run_program(path, PROGRAM)
    assert status == 0, errors
    contract(tmp_path / "run", json.loads(path.read_text()))
    assert [row["critic"]["grad_norm"] > 0 for row in read_rows(tmp_path / "run/data/curve.jsonl")]
    state = (tmp_path / "run/data/state/critic.safetensors").read_bytes()
    assert b"reader.encoder.encoder.layer.0" in state

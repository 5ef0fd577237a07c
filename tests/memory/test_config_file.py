"""Models that lie in a folder: their own config.json says what they need; a bad one is told of."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.support.model_folder import write_model_folder

from agentc.backend_api import load_backends
from agentc.compilation import Compilation, compile_spec
from agentc.memory import PUBLISHED_SHAPES
from agentc.memory.architectures import MOST_BYTES, ConfigFileError, shape_in

PUBLISHED = Path(__file__).parents[1] / "gpu_commands" / "models"
TABLE = load_backends()
SMALL: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 2048,
    "intermediate_size": 5632,
    "max_position_embeddings": 2048,
    "num_attention_heads": 32,
    "num_hidden_layers": 22,
    "num_key_value_heads": 4,
    "vocab_size": 32000,
}
SPEC = """
agentc: 1
name: local
models: {mine: {backend: path, path: PATH}}
environments: {craft: {backend: textcraft}}
servers: {own: {backend: vllm}}
prompts: {react: {instruction: Craft the goal.}}
stages:
  expert: {kind: expert, split: train, limit: 64}
  sft: {kind: sft, backend: trl, model: mine, data: expert, lr: 1e-5, global_batch: 64,
        micro_batch: 1, max_length: 1024, dtype: bfloat16, placement: {gpus: 1, gpu: CARD}}
  explore: {kind: rollout, model: sft, split: train, limit: 64,
            placement: {gpus: 1, gpu: 80}}
"""


def compiled(
    folder: Path, config: str | None, card: str = "80", path: str = "weights"
) -> Compilation:
    write_model_folder(folder / "weights", shapes={"weight": (2, 2)})
    (folder / "weights" / "config.json").unlink()
    if config is not None:
        (folder / "weights" / "config.json").write_text(config)
    spec = folder / "spec.yaml"
    spec.write_text(SPEC.replace("PATH", path).replace("CARD", card))
    return compile_spec(spec, {}, TABLE)


@pytest.mark.parametrize(
    ("file", "name"),
    [("Llama-2-7b-chat-hf", "llama-2-7b"), ("Llama-3.1-8B-Instruct", "llama-3.1-8b")],
)
def test_published_files_say_what_is_known_by_name(file: str, name: str) -> None:
    found = shape_in((PUBLISHED / f"{file}.json").read_bytes())
    assert found is not None
    assert found.shape == PUBLISHED_SHAPES[name]
    assert not found.stretched


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"hidden_size": None}, "no `hidden_size`"),
        ({"num_hidden_layers": -1}, "`num_hidden_layers` is -1"),
        ({"vocab_size": "32000"}, '`vocab_size` is "32000"'),
        ({"vocab_size": True}, "`vocab_size` is true"),
        ({"intermediate_size": 10**30}, "not a size"),
        ({"num_attention_heads": 0}, "`num_attention_heads` is 0"),
    ],
)
def test_a_size_that_is_none(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigFileError, match=words):
        shape_in(json.dumps({**SMALL, **change}).encode())


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[1]", b"\xff\xfe{}", b"[" * 100_000, b'{"model_type": "llama"}',
     b" " * (MOST_BYTES + 1)],
)  # fmt: skip
def test_what_is_no_configuration(content: bytes) -> None:
    with pytest.raises(ConfigFileError):
        shape_in(content)


def test_left_out_and_unknown() -> None:
    assert shape_in(json.dumps({**SMALL, "model_type": "mixtral"}).encode()) is None
    less = {k: v for k, v in SMALL.items() if k != "num_key_value_heads"}
    found = shape_in(json.dumps(less).encode())
    assert found is not None
    assert (found.shape.kv_heads, found.shape.head_size) == (32, 64)
    longer = {**SMALL, "rope_scaling": {"type": "linear", "factor": 4.0}}
    stretched = shape_in(json.dumps(longer).encode())
    assert stretched is not None
    assert stretched.stretched


def test_a_folder_is_held_against_the_gpu(tmp_path: Path) -> None:
    """1.1 billion weights by trl: 16 bytes each."""
    plan = compiled(tmp_path, json.dumps(SMALL)).plan
    assert plan is not None
    memory = {job.id: job.memory for job in plan.jobs if job.memory is not None}
    assert set(memory) == {"sft", "explore"}
    assert 4.3e9 < memory["sft"].parts["weights"] < 4.5e9
    (refused,) = compiled(tmp_path, json.dumps(SMALL), card="16").diagnostics
    assert refused.code == "AGC660"
    assert "`sft` needs" in refused.message


def test_the_file_speaks_and_the_name_of_the_folder_does_not(tmp_path: Path) -> None:
    (tmp_path / "llama-2-7b").symlink_to("weights")
    plan = compiled(tmp_path, json.dumps(SMALL), path="llama-2-7b").plan
    assert plan is not None
    memory = {job.id: job.memory for job in plan.jobs}["sft"]
    assert memory is not None
    assert memory.parts["weights"] < 5e9
    # Of another type of model nothing is known, whatever the folder is called.
    found = compiled(tmp_path, '{"model_type": "mamba"}', path="llama-2-7b").plan
    assert found is not None
    assert all(job.memory is None for job in found.jobs)
    # Without the file there is no model, and nothing follows from the name.
    (missing,) = compiled(tmp_path, None, path="llama-2-7b").diagnostics
    assert missing.code == "AGC662"


def test_its_positions_are_the_longest_row(tmp_path: Path) -> None:
    short = json.dumps({**SMALL, "max_position_embeddings": 512})
    found = compiled(tmp_path, short).diagnostics
    refused = [each for each in found if "512 positions, by its config.json" in str(each.notes)]
    assert refused
    assert {each.severity for each in refused} == {"error"}


@pytest.mark.parametrize("content", ["{", json.dumps({**SMALL, "hidden_size": 0})])
def test_a_bad_file_is_a_message_with_its_place(content: str, tmp_path: Path) -> None:
    (found,) = compiled(tmp_path, content).diagnostics
    assert (found.code, found.severity) == ("AGC662", "error")
    assert found.span is not None
    assert found.span.line == 4


def test_nothing_is_read_outside_of_the_spec_or_from_a_pipe(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside.json"
    inside.mkdir()
    outside.write_text("{")
    compiled(inside, None)
    file = inside / "weights" / "config.json"
    file.symlink_to(outside)
    found = compile_spec(inside / "spec.yaml", {}, TABLE).diagnostics
    assert {each.code for each in found}.isdisjoint({"AGC662"})
    file.unlink()
    os.mkfifo(file)
    (pipe,) = compile_spec(inside / "spec.yaml", {}, TABLE).diagnostics
    assert pipe.message == "weights holds config.json, which cannot be read"

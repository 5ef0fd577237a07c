"""Post-conditions of checkpoints and critics: files, headers of weights, what critics were made
by."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.contract_cases import check

from agentc.runtime.model_folder.weights import read_header


def checkpoint(folder: Path) -> Path:
    """A healthy checkpoint of one tensor."""
    folder.mkdir(exist_ok=True)
    for name in ("config.json", "generation_config.json", "tokenizer.json"):
        (folder / name).write_text("{}")
    (folder / "tokenizer_config.json").write_text("{}")
    (folder / "chat_template.jinja").write_text("x")
    (folder / "agentc_chat.json").write_text('{"chat_format": "chatml"}')
    write_weights(folder / "model.safetensors", {"w": 8})
    return folder


def write_weights(path: Path, tensors: dict[str, int]) -> None:
    """Float32 tensors of so many bytes each."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, size in tensors.items():
        header[name] = {"dtype": "F32", "shape": [size // 4], "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"\0" * end)


def _cut(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1])


def _scored(folder: Path, ids: list[int], log_probs: list[float | None]) -> None:
    text = json.dumps(
        {"dtype": "float32", "rows": [{"ids": ids, "log_probs": log_probs}], "prompts": []}
    )
    (folder / "agentc_log_probs.json").write_text(text)


def test_a_checkpoint_may_hold_scored_rows(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "d")
    _scored(folder, [1, 2], [None, -0.5])
    assert check("Checkpoint", folder) is None


def _index(folder: Path, placed: dict[str, str]) -> None:
    text = json.dumps({"weight_map": placed})
    (folder / "model.safetensors.index.json").write_text(text)


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (_cut, "model.safetensors: not a whole safetensors file"),
        (lambda d: (d / "model.safetensors").write_bytes(b"PK"), "shorter than a header"),
        (lambda d: (d / "model.safetensors").write_bytes(b"\xff" * 64), "the header claims"),
        (lambda d: (d / "model.safetensors").unlink(), "model.safetensors: the file is missing"),
        (lambda d: (d / "tokenizer.json").unlink(), "tokenizer.json: the file is missing"),
        (lambda d: (d / "config.json").write_text("{"), "config.json: not JSON"),
        (lambda d: (d / "config.json").write_text("[" * 100_000), "config.json: not JSON"),
        (lambda d: (d / "model.safetensors.index.json").write_text("[" * 100_000), "weight_map"),
        (lambda d: (d / "agentc_chat.json").write_text("{}"), "field chat_format"),
        (lambda d: (d / "training_args.bin").write_bytes(b"x"), "pickled files are refused"),
        (lambda d: (d / "optimizer.pt").write_bytes(b"x"), "pickled files are refused"),
        (lambda d: _index(d, {"w": "a.safetensors"}), "a.safetensors: the file is missing"),
        (lambda d: _index(d, {"v": "model.safetensors"}), "lacks tensors"),
        (lambda d: (d / "link").symlink_to("/etc/hostname"), "link: is a symbolic link"),
        (lambda d: (d / "agentc_log_probs.json").write_text("[]"), "agentc_log_probs.json"),
        (lambda d: _scored(d, [1, 2], [None]), "row 0 has not one log-probability a token"),
    ],
)
def test_faulty_checkpoint(tmp_path: Path, spoil: Callable[[Path], object], expected: str) -> None:
    folder = checkpoint(tmp_path / "d")
    assert check("Checkpoint", folder) is None
    spoil(folder)
    assert expected in str(check("Checkpoint", folder))


def test_sharded_checkpoint_passes(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "d")
    (folder / "model.safetensors").unlink()
    write_weights(folder / "one.safetensors", {"a": 8})
    write_weights(folder / "two.safetensors", {"b": 4, "c": 4})
    _index(folder, {"a": "one.safetensors", "b": "two.safetensors", "c": "two.safetensors"})
    assert check("Checkpoint", folder) is None


def test_optional_files_may_be_absent(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "d")
    (folder / "chat_template.jinja").unlink()
    assert check("Checkpoint", folder, {"optional_files": ["chat_template.jinja"]}) is None


def test_real_safetensors_header_is_read(tmp_path: Path) -> None:
    """Against the library that trainers write with, where it is installed."""
    safetensors = pytest.importorskip("safetensors.numpy")
    numpy = pytest.importorskip("numpy")
    path = tmp_path / "x.safetensors"
    safetensors.save_file({"w": numpy.zeros((2, 3), dtype="float16")}, str(path))
    assert read_header(path)["w"].shape == (2, 3)


CRITIC: dict[str, Any] = {
    "parameterisation": "log_ratio",
    "normalisation": "turn",
    "template": "In light that the final answer is: {privileged}.",
    "reference": "model/0123",
    "reference_sees": "privileged",
    "beta": 0.1,
    "objective": "bradley_terry",
}


def critic(folder: Path, head: dict[str, int] | None = None, **fields: Any) -> Path:
    data = checkpoint(folder)
    (data / "agentc_critic.json").write_text(json.dumps({**CRITIC, **fields}))
    if head is not None:
        write_weights(data / "value_head.safetensors", head)
    return data


def test_a_critic_is_a_model_and_what_it_was_trained_by(tmp_path: Path) -> None:
    assert check("CriticCheckpoint", critic(tmp_path / "d")) is None
    assert check("CriticCheckpoint", critic(tmp_path / "e", template=None)) is None
    bare = checkpoint(tmp_path / "f")
    assert "agentc_critic.json: the file is missing" in (check("CriticCheckpoint", bare) or "")
    idle = critic(tmp_path / "g", {"weight": 8})
    assert "value_head.safetensors: nobody reads it" in (check("CriticCheckpoint", idle) or "")
    flat = critic(tmp_path / "h", {"weight": 8}, parameterisation="value_head", pooling="mean")
    assert "expected weight and bias" in (check("CriticCheckpoint", flat) or "")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"normalisation": "sum"}, 'field normalisation: "sum" is not one of turn'),
        ({"objective": None}, "field objective: null is not one of bradley_terry"),
        ({"template": "c is c"}, "field template: expected null, or text with {privileged}"),
        ({"reference": None}, "field reference: expected <kind>/<key>"),
        ({"beta": 0}, "field beta: expected a number above 0"),
        ({"parameterisation": "value_head", "pooling": "mean"}, "value_head.safetensors: the file"),
        ({"parameterisation": "value_head"}, "field pooling: null is not one of mean, last"),
    ],
)
def test_faulty_critic(tmp_path: Path, fields: dict[str, Any], expected: str) -> None:
    assert expected in (check("CriticCheckpoint", critic(tmp_path / "d", **fields)) or "")

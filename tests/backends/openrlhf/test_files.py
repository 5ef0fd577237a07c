"""Checkpoints that were cut off, and model directories that name code."""

from __future__ import annotations

import json
from pathlib import Path

from agentc_backends.trainers.common.checkpoints import mark_complete
from agentc_backends.trainers.openrlhf.checkpoints import (
    FOLDER,
    keep_newest_checkpoint,
    without_code,
)


def checkpoint(work: Path, step: int, whole: bool = True) -> Path:
    folder = work / FOLDER / f"global_step{step}"
    folder.mkdir(parents=True)
    (folder / "mp_rank_00_model_states.pt").write_bytes(b"x")
    if whole:
        mark_complete(folder)
    return folder


def test_only_the_newest_whole_checkpoint_is_kept_and_named(tmp_path: Path) -> None:
    for step in (8, 9, 10):
        checkpoint(tmp_path, step)
    checkpoint(tmp_path, 11, whole=False)
    (tmp_path / FOLDER / "latest").write_text("global_step11")
    assert keep_newest_checkpoint(tmp_path) == 10
    assert [path.name for path in (tmp_path / FOLDER).iterdir() if path.is_dir()] == [
        "global_step10"
    ]
    assert (tmp_path / FOLDER / "latest").read_text() == "global_step10"


def test_nothing_whole_means_from_the_start(tmp_path: Path) -> None:
    assert keep_newest_checkpoint(tmp_path) == 0
    checkpoint(tmp_path, 3, whole=False)
    (tmp_path / FOLDER / "latest").write_text("")
    assert keep_newest_checkpoint(tmp_path) == 0
    assert list((tmp_path / FOLDER).iterdir()) == []


def test_a_view_of_a_model_names_no_code_and_leaves_the_model_alone(tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    config = {"model_type": "llama", "auto_map": {"AutoModelForCausalLM": "someone/else--m.C"}}
    (model / "config.json").write_text(json.dumps(config))
    (model / "tokenizer_config.json").write_text(json.dumps({"auto_map": {}, "eos_token": "e"}))
    (model / "model.safetensors").write_bytes(b"weights")
    for _ in range(2):  # a rerun finds the first one there
        view = without_code(model, tmp_path / "work" / "view")
    assert json.loads((view / "config.json").read_text()) == {"model_type": "llama"}
    assert json.loads((view / "tokenizer_config.json").read_text()) == {"eos_token": "e"}
    assert (view / "model.safetensors").read_bytes() == b"weights"
    assert json.loads((model / "config.json").read_text()) == config

"""Encoders of pictures and of texts as specs have them: what is refused while compiling, and of
directories that are taken."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.runtime.contract_cases import check
from tests.runtime.test_checkpoint_contract import write_weights

from agentc.backend_api import load_backends
from agentc.compilation import compile_spec
from agentc.runtime.model_folder.folder import Needs
from agentc_backends.data.models.checkpoint import CheckpointError, check_directory
from agentc_backends.data.models.model_files import (
    TEXT_ENCODER_TYPES,
    check_encoder_directory,
    require_type,
)

SPEC = """\
agentc: 1
name: encoders
stages: {{clip: {{kind: encoder, {said}}}}}
"""
TEXTS = """\
agentc: 1
name: encoders
stages: {{reads: {{kind: text_encoder, {said}}}}}
"""


def encoder(folder: Path, model_type: str = "clip") -> Path:
    """A directory that could be a CLIP's, of one tensor."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"model_type": model_type}))
    (folder / "preprocessor_config.json").write_text("{}")
    write_weights(folder / "model.safetensors", {"w": 8})
    return folder


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ("backend: hf", "encoder.hf needs `repo`"),
        ("backend: hf, repo: openai/clip-vit-base-patch32, revision: main", "no lock pins it"),
        ("backend: path, path: nowhere", "there is no readable directory nowhere"),
        ("backend: scratch, width: 30, heads: 4", "4 heads do not divide a width of 30"),
        ("backend: scratch, patch_size: 64, image_size: 32", "a patch of 64 pixels"),
        ("backend: scratch, repo: owner/name", "repo"),
    ],
)
def test_what_cannot_be_is_refused(said: str, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text(SPEC.format(said=said))
    found = compile_spec(tmp_path / "spec.yaml", {}, load_backends())
    assert found.plan is None
    assert any(complaint in each.message for each in found.diagnostics), found.diagnostics


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ("backend: hf", "text_encoder.hf needs `repo`"),
        ("backend: path, path: nowhere", "there is no readable directory nowhere"),
        ("backend: scratch, hidden_size: 30, heads: 4", "4 heads do not divide a width of 30"),
        ("backend: scratch", "is trained on the text of a corpus"),
    ],
)
def test_what_cannot_be_of_texts_is_refused(said: str, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text(TEXTS.format(said=said))
    found = compile_spec(tmp_path / "spec.yaml", {}, load_backends())
    assert found.plan is None
    assert any(complaint in each.message for each in found.diagnostics), found.diagnostics


def test_a_directory_enters_the_key_by_its_content(tmp_path: Path) -> None:
    def key(name: str) -> str:
        (tmp_path / "spec.yaml").write_text(SPEC.format(said=f"backend: path, path: {name}"))
        found = compile_spec(tmp_path / "spec.yaml", {}, load_backends())
        assert found.plan is not None, found.diagnostics
        return found.plan.by_id()["clip"].key

    encoder(tmp_path / "clip")
    first = key("clip")
    (tmp_path / "clip" / "config.json").write_text('{"model_type": "clip", "seed": 1}')
    assert key("clip") != first


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda d: (d / "preprocessor_config.json").unlink(), "how it wants its pictures"),
        (lambda d: (d / "config.json").write_text("{"), "is no JSON"),
        (lambda d: (d / "config.json").write_text('{"model_type": "llama"}'), "'llama'"),
        (lambda d: (d / "model.safetensors").rename(d / "pytorch_model.bin"), "pytorch_model.bin"),
    ],
)
def test_what_is_no_encoder_is_not_taken(
    spoil: Callable[[Path], object], complaint: str, tmp_path: Path
) -> None:
    folder = encoder(tmp_path / "clip")
    check_encoder_directory(folder)
    spoil(folder)
    with pytest.raises(CheckpointError, match=complaint):
        check_encoder_directory(folder)


def test_a_model_that_speaks_is_no_encoder_of_texts(tmp_path: Path) -> None:
    folder = encoder(tmp_path / "reads", "gpt2")
    found = check_directory(folder, needs=Needs(tokenizer=False, language=False))
    with pytest.raises(CheckpointError, match="'gpt2'; expected albert or bert"):
        require_type(found, TEXT_ENCODER_TYPES, "reads")


def test_the_contract_of_encoders(tmp_path: Path) -> None:
    folder = encoder(tmp_path / "d")
    assert check("VisionEncoder", folder) is None
    (folder / "preprocessor_config.json").unlink()
    assert "preprocessor_config.json: the file is missing" in str(check("VisionEncoder", folder))
    (encoder(folder) / "model.bin").write_bytes(b"x")
    assert "model.bin: pickled files are refused" in str(check("VisionEncoder", folder))

"""Checkpoints as transformers 4 reads them, which checkpoint to resume from, and the last words of
a failed program."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from agentc_backends.trainers.xtuner.conversion import (
    into_transformers_4,
    older_config,
    older_tokenizer,
)
from agentc_backends.trainers.xtuner.job_sft import iterations_of, last_error, newest_checkpoint


def test_positions_and_types_of_a_newer_configuration_survive() -> None:
    new = {
        "dtype": "bfloat16",
        "rope_parameters": {"rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0},
        "hidden_size": 64,
    }
    assert older_config(new) == {
        "torch_dtype": "bfloat16",
        "rope_theta": 5e5,
        "rope_scaling": {"rope_type": "llama3", "factor": 8.0},
        "hidden_size": 64,
    }
    plain = older_config({"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}})
    assert plain == {"rope_theta": 1e6}
    old = {"torch_dtype": "float16", "rope_theta": 1e4, "rope_scaling": None}
    assert older_config(old) == old


def test_a_tokenizer_is_read_from_its_file_and_keeps_its_special_tokens() -> None:
    new = {
        "backend": "tokenizers",
        "tokenizer_class": "TokenizersBackend",
        "extra_special_tokens": ["<a>"],
    }
    assert older_tokenizer(new, "template") == {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "additional_special_tokens": ["<a>"],
        "chat_template": "template",
    }
    assert older_tokenizer({"tokenizer_class": "LlamaTokenizer"}, None) == {
        "tokenizer_class": "PreTrainedTokenizerFast"
    }


def test_the_view_of_a_checkpoint_has_links_to_weights_and_no_code(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    (source / "model.safetensors").write_bytes(b"weights")
    (source / "chat_template.jinja").write_text("T")
    code = {"auto_map": {"AutoModel": "modeling_own.Own"}}
    (source / "config.json").write_text(json.dumps({"dtype": "float32", **code}))
    (source / "tokenizer_config.json").write_text(json.dumps(code))
    (source / "modeling_own.py").write_text("raise SystemExit('remote code ran')")
    for _ in range(2):  # a resumed job does it again
        into_transformers_4(source, target)
    assert (target / "model.safetensors").is_symlink()
    assert json.loads((target / "config.json").read_text()) == {"torch_dtype": "float32"}
    assert json.loads((target / "tokenizer_config.json").read_text()) == {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "chat_template": "T",
    }
    assert json.loads((source / "config.json").read_text()) == {"dtype": "float32", **code}
    # XTuner would run the code of a model without being asked.
    assert not (target / "modeling_own.py").exists()


def checkpoint(path: Path, *, cut: bool = False) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data", b"0" * 5000)
    if cut:
        path.write_bytes(path.read_bytes()[:3000])


def test_a_checkpoint_that_was_cut_off_is_not_resumed_from(tmp_path: Path) -> None:
    assert newest_checkpoint(tmp_path / "nothing") is None
    checkpoint(tmp_path / "iter_8.pth")
    checkpoint(tmp_path / "iter_16.pth")
    checkpoint(tmp_path / "iter_24.pth", cut=True)
    found = newest_checkpoint(tmp_path)
    assert found == tmp_path / "iter_16.pth"
    assert not (tmp_path / "iter_24.pth").exists()
    assert iterations_of(found) == 16


def test_deepspeed_names_its_whole_checkpoints(tmp_path: Path) -> None:
    for number in (8, 16, 24):
        (tmp_path / f"iter_{number}.pth").mkdir()
    (tmp_path / "last_checkpoint").write_text(str(tmp_path / "iter_16.pth"))
    assert newest_checkpoint(tmp_path) == tmp_path / "iter_16.pth"
    assert not (tmp_path / "iter_24.pth").exists()
    (tmp_path / "last_checkpoint").write_text("")  # cut off while it was written
    assert newest_checkpoint(tmp_path) == tmp_path / "iter_8.pth"


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (["Traceback (most recent call last):", "ValueError: no", "  warn("], "ValueError: no"),
        (
            ["[rank1]: torch.OutOfMemoryError: CUDA out of memory.",
             "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: x"],
            "torch.OutOfMemoryError: CUDA out of memory.",
        ),
        (["Killed", ""], "Killed"),
        ([], "it printed nothing"),
    ],
)  # fmt: skip
def test_the_last_error_of_a_program(output: list[str], message: str) -> None:
    assert last_error(output) == message

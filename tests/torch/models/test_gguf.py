"""The job of model.gguf: its tensors, configuration and tokenizer are those that transformers reads
out of the same GGUF file."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import numpy
import torch
from tests.support.built_software import built_python
from tests.support.gguf_files import gguf_bytes, settings_of, shapes_of, write_gguf
from tests.torch.trl.jobs import facts, make_job
from transformers import AutoModelForCausalLM, AutoTokenizer

from agentc.runtime.model_folder.gguf_header import TYPES, read_gguf_header
from agentc.runtime.model_folder.gguf_model import gguf_model
from agentc.runtime.store.digests import content_digest
from agentc_backends.data.models.checkpoint import load_model
from agentc_backends.data.models.gguf import job_gguf
from agentc_backends.data.models.gguf.backend import SMOLLM2
from agentc_backends.data.models.gguf.tensors import write_tensors
from agentc_backends.software import GGUF

CHANGES = {"F16": 1, "Q4_0": 2, "Q4_1": 3, "Q8_0": 8, "BF16": 30}
"""Numbers of the types that tiny files are quantised to."""


@pytest.fixture(scope="module")
def python() -> str:
    """The interpreter of the job's software, whose package `gguf` these tests import too."""
    found = built_python(GGUF)
    site = next(Path(found).parents[1].glob("lib/python3*/site-packages"))
    sys.path.append(str(site))  # behind all others: nothing else of it is used
    return found


def quantised(path: Path, architecture: str, kind: str, tied: bool = True) -> Path:
    """A model of random weights, its matrices of one type."""
    from gguf import GGMLQuantizationType, quants

    random = numpy.random.default_rng(7)
    tensors = {}
    for name, shape in shapes_of(architecture, tied).items():
        values = random.normal(0, 0.1, shape).astype(numpy.float32)
        number = CHANGES[kind] if len(shape) == 2 else 0
        content = quants.quantize(values, GGMLQuantizationType(number))
        tensors[name] = (number, shape, content.tobytes())
    path.write_bytes(gguf_bytes(settings_of(architecture), tensors))
    return path


def convert(
    root: Path, source: Path, monkeypatch: pytest.MonkeyPatch, **changes: Any
) -> tuple[int, Path]:
    """Run the job here: its status, and the model's folder."""
    job = make_job(root / "job", "model", {**config_of(source), **changes}, {})
    monkeypatch.setattr("sys.argv", ["job_gguf", str(job)])
    return job_gguf.main(), root / "job" / "data"


def config_of(source: Path) -> dict[str, Any]:
    names = ("repo", "revision", "package", "file", "sha256")
    return {
        **dict.fromkeys(names),
        "path": str(source),
        "digest": content_digest(source),
        "save_dtype": "float32",
        "chat_format": "tokenizer",
    }


@pytest.mark.parametrize(
    ("architecture", "kind", "tied"),
    [
        *(("llama", kind, True) for kind in CHANGES),
        ("llama", "Q4_0", False),
        ("qwen2", "Q4_1", True),
        ("qwen2", "Q8_0", False),
        ("qwen3", "F16", True),
    ],
)
def test_a_small_file_is_the_model_that_transformers_reads(
    architecture: str,
    kind: str,
    tied: bool,
    python: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = quantised(tmp_path / "m.gguf", architecture, kind, tied)
    status, folder = convert(tmp_path, source, monkeypatch)
    assert status == 0
    ours = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file="m.gguf", dtype=torch.float32)
    own, other = ours.state_dict(), theirs.state_dict()
    assert own.keys() == other.keys()
    # The last bit may differ: each of the two libraries orders its products in its own way.
    assert all(torch.allclose(own[name], other[name], rtol=1e-6, atol=1e-7) for name in own)
    ids = torch.tensor([[1, 5, 9, 20, 2]])
    with torch.no_grad():
        assert torch.allclose(ours(ids).logits, theirs(ids).logits, atol=1e-4)
    assert ours.config.tie_word_embeddings is tied
    assert ours.generation_config.eos_token_id == [2]
    found = facts(tmp_path / "job")
    assert found["quantisation"] == kind
    assert found["gguf_sha256"] == hashlib.sha256(source.read_bytes()).hexdigest()
    assert load_model(folder).config.model_type == architecture  # as trainers load it


def test_a_model_in_several_files_and_in_bfloat16(
    python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = quantised(tmp_path / "m.gguf", "llama", "Q8_0")
    _, whole = convert(tmp_path, source, monkeypatch)
    model = gguf_model(read_gguf_header(source))
    parts = tmp_path / "parts"
    parts.mkdir()
    write_tensors(source, model, "bfloat16", parts, lambda done, total: None, file_bytes=10_000)
    (parts / "config.json").write_text((whole / "config.json").read_text())
    assert len(list(parts.glob("model-*.safetensors"))) > 2
    exact = AutoModelForCausalLM.from_pretrained(whole, dtype=torch.float32).state_dict()
    rounded = AutoModelForCausalLM.from_pretrained(parts, dtype=torch.bfloat16).state_dict()
    assert all(torch.equal(exact[name].bfloat16(), rounded[name]) for name in exact)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"tokenizer.chat_template": None},
            "the tokenizer ships no chat template; set chat_format",
        ),
        ({"general.architecture": "gemma3"}, "has the architecture 'gemma3'"),
    ],
)
def test_the_job_rejects_what_check_did_not_see(
    changes: dict[str, Any],
    message: str,
    python: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source = write_gguf(tmp_path / "m.gguf", **changes)
    status, _ = convert(tmp_path, source, monkeypatch)
    assert status == 1
    assert message in capsys.readouterr().err


def test_a_template_for_a_file_without_one(
    python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_gguf(tmp_path / "m.gguf", **{"tokenizer.chat_template": None})
    status, folder = convert(tmp_path, source, monkeypatch, chat_format="chatml")
    assert status == 0
    assert "<|im_start|>" in (folder / "chat_template.jinja").read_text()


@pytest.mark.parametrize("changes", [{"digest": "0" * 64}, {"sha256": "0" * 64}])
def test_another_file_than_planned_is_rejected(
    changes: dict[str, str], python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status, _ = convert(tmp_path, write_gguf(tmp_path / "m.gguf"), monkeypatch, **changes)
    assert status == 1


def test_the_types_are_those_of_the_library(python: str) -> None:
    from gguf import GGML_QUANT_SIZES

    known = {int(kind): (kind.name, *sizes) for kind, sizes in GGML_QUANT_SIZES.items()}
    assert {number: known[number] for number in TYPES} == TYPES


PUBLISHED: Sequence[tuple[str, list[int]]] = (
    ("Hello world", [19556, 905]),
    ("What is the capital of France?", [1780, 314, 260, 3575, 282, 4649, 47]),
    ("The year 2024 had 365 days; 12 months.",
     [504, 713, 216, 34, 32, 34, 36, 761, 216, 35, 38, 37, 2009, 43, 216, 33, 34, 2704, 30]),
    ("  leading and   multiple   spaces  ", [216, 2899, 284, 256, 2701, 256, 5600, 256]),
    ("def f(n):\n    return n+1\n", [1604, 275, 24, 94, 727, 472, 1003, 304, 27, 33, 198]),
    ("Grüße, café!", [27302, 7170, 34878, 85, 28, 37366, 17]),
    ("Tab\there\nNewline\n\nDouble", [30064, 197, 1531, 198, 5529, 1311, 198, 198, 33743]),
    ("'s 't 're 've 'm 'll 'd", [506, 637, 100, 637, 257, 637, 307, 637, 93, 637, 764, 637, 84]),
    ("a,b,c...   ???!!!  <tag>",
     [81, 28, 82, 28, 83, 2026, 256, 9148, 16693, 29646, 216, 2067, 9204, 46]),
    ("Hello, 世界!", [19556, 28, 216, 7906, 240, 178, 239, 230, 17]),
    ("user\nWhat is the capital of France?", [4093, 198, 1780, 314, 260, 3575, 282, 4649, 47]),
    ("assistant\n", [520, 9531, 198]),
    ("\n", [198]),
    ("<|endoftext|>", [0]),
)  # fmt: skip
"""Texts and their tokens in SmolLM2's vocabulary, as public tests of other programs have them."""
_SYSTEM = [1, 9690, 198, 2683, 359, 253, 5356, 5646, 11173, 3365, 3511, 308, 34519, 28, 7018, 411,
           407, 19712, 8182, 2, 198, 1, 4093, 198]  # fmt: skip
_REPLY = [2, 198, 1, 520, 9531, 198]
CHATS: Sequence[tuple[str, list[int]]] = (
    ("hello world", [28120, 905]),
    ("Hi there", [26843, 665]),
    ("What is the capital of France?", [1780, 314, 260, 3575, 282, 4649, 47]),
    ("What is the capital of France? Answer in one sentence.",
     [1780, 314, 260, 3575, 282, 4649, 47, 19842, 281, 582, 6330, 30]),
    ("Quelle est la capitale de la France ? Réponds en une phrase.",
     [65, 2726, 290, 1264, 2618, 47765, 1121, 367, 2618, 4649, 9148, 428, 2756, 96, 19870, 430,
      16520, 8715, 30]),
    ("The capital of France is", [504, 3575, 282, 4649, 314]),
)  # fmt: skip
"""Messages of a user in the model's chat template, which adds a system message."""


@pytest.fixture(scope="module")
def smollm2(python: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """SmolLM2-135M-Instruct converted by the job in its own software, and the GGUF file."""
    (source,) = SMOLLM2.sources
    given = os.environ.get("AGENTC_SMOLLM2")
    if not given:
        pytest.skip(f"AGENTC_SMOLLM2 names no {source.name}; `agentc data fetch {SMOLLM2.name}`")
    path = Path(given)
    root = tmp_path_factory.mktemp("smollm2")
    job = make_job(root, "model", {**config_of(path), "sha256": source.sha256}, {})
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(_code())}
    command = [python, "-m", "agentc_backends.data.models.gguf.job_gguf", str(job)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads((root / "facts.json").read_text())["quantisation"] == "Q4_1"
    return root / "data", path


def _code() -> list[str]:
    import agentc
    import agentc_backends

    return [str(Path(module.__path__[0]).parent) for module in (agentc, agentc_backends)]


@pytest.mark.long
def test_smollm2_is_the_model_that_transformers_reads(smollm2: tuple[Path, Path]) -> None:
    folder, source = smollm2
    ours = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    theirs = AutoModelForCausalLM.from_pretrained(
        source.parent, gguf_file=source.name, dtype=torch.float32
    )
    tokenizer = AutoTokenizer.from_pretrained(folder)
    for text, _ in (*PUBLISHED, *CHATS):
        ids = tokenizer(text, return_tensors="pt").input_ids
        with torch.no_grad():
            difference = (ours(ids).logits - theirs(ids).logits).abs().max().item()
        assert difference <= 1e-4, text


@pytest.mark.long
def test_smollm2_reads_the_tokens_that_were_published(smollm2: tuple[Path, Path]) -> None:
    tokenizer = AutoTokenizer.from_pretrained(smollm2[0])
    assert {text: tokenizer(text).input_ids for text, _ in PUBLISHED} == dict(PUBLISHED)
    for text, ids in CHATS:
        made = tokenizer.apply_chat_template(
            [{"role": "user", "content": text}], add_generation_prompt=True, return_dict=True
        )
        assert made["input_ids"] == [*_SYSTEM, *ids, *_REPLY], text

"""Jobs of model.scratch, model.path and model.hf, run as the runtime starts them."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from tests.torch.trl.jobs import (
    facts,
    launch,
    make_job,
    small_model,
    trajectories,
    write_rows,
)
from tests.torch.trl.programs import run_program
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer

from agentc.runtime.store.digests import content_digest
from agentc_backends.data.chat.formats import format_named, render
from agentc_backends.data.chat.tokens import load_encoder
from agentc_backends.data.models import job_path

MODELS = "agentc_backends.data.models.job_"
Adopt = Callable[..., tuple[int, str, Path]]


def digests(directory: Path) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(directory.iterdir())
    }


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_model(tmp_path_factory.mktemp("made"))


class TestScratch:
    def test_the_checkpoint_loads_and_answers(self, made: Path) -> None:
        model = AutoModelForCausalLM.from_pretrained(made)
        tokenizer = AutoTokenizer.from_pretrained(made)
        assert model.config.vocab_size == len(tokenizer) == facts(made.parent)["vocabulary"]
        ids = tokenizer.apply_chat_template(
            [{"role": "user", "content": "Goal: craft stick."}],
            add_generation_prompt=True,
            return_tensors="pt",
            return_dict=True,
        )
        out = model.generate(**ids, max_new_tokens=3, do_sample=False)
        assert out.shape[1] == ids["input_ids"].shape[1] + 3
        assert model.generation_config.eos_token_id == tokenizer.eos_token_id

    @pytest.mark.slow
    def test_same_seed_same_bytes_in_another_process(self, made: Path, tmp_path: Path) -> None:
        spec = json.loads((made.parent / "job.json").read_text())
        # The corpus in another order and over two directories is the same corpus.
        rows = trajectories(24)[::-1]
        parts = [
            write_rows(tmp_path / "a", "trajectories.jsonl", rows[:10]),
            write_rows(tmp_path / "b", "rows.jsonl", rows[10:]),
        ]
        job = make_job(tmp_path / "job", "model", spec["config"], {"corpus": parts})
        status, out, err = launch(job, MODELS + "scratch")
        assert status == 0, out + err
        assert digests(tmp_path / "job" / "data") == digests(made)

    def test_another_seed_changes_weights_only(self, made: Path, tmp_path: Path) -> None:
        other = digests(small_model(tmp_path, seed=1))
        same = digests(made)
        assert {name for name in same if same[name] != other[name]} == {"model.safetensors"}

    @pytest.mark.parametrize("chat_format", ["chatml", "llama-2", "mistral", "vicuna"])
    def test_every_format_round_trips(self, chat_format: str, tmp_path: Path) -> None:
        directory = small_model(tmp_path, chat_format=chat_format)
        encoder = load_encoder(directory)
        assert encoder.chat is not None
        assert encoder.chat.name == chat_format
        messages: Any = trajectories(4)[3]["messages"]
        ids = encoder.encode(messages).ids
        text = render(format_named(chat_format), messages)
        assert encoder.tokenizer.decode(ids) == text
        assert encoder.tokenizer.apply_chat_template(messages, tokenize=False) == text
        assert ids[-1] != encoder.tokenizer.pad_token_id

    def test_qwen2_and_grouped_heads(self, tmp_path: Path) -> None:
        directory = small_model(tmp_path, architecture="qwen2", kv_heads=1, tie_embeddings=False)
        model = AutoModelForCausalLM.from_pretrained(directory)
        assert model.config.model_type == "qwen2"
        assert model.config.num_key_value_heads == 1
        assert model.lm_head.weight.data_ptr() != model.model.embed_tokens.weight.data_ptr()

    @pytest.mark.parametrize("architecture", ["llama", "qwen2"])
    def test_the_tokenizer_file_says_what_is_made_of_it(
        self, tmp_path: Path, architecture: str
    ) -> None:
        """transformers gives qwen2 a pre-tokeniser of its own, whatever the file says."""
        directory = small_model(tmp_path, architecture=architecture)
        text = "Craft 120 planks.\n\n\nGoal: it's  here\u0301!"
        literally = Tokenizer.from_file(str(directory / "tokenizer.json"))
        loaded = AutoTokenizer.from_pretrained(directory)
        assert literally.encode(text).ids == loaded(text).input_ids

    def test_an_empty_corpus_is_refused(self, made: Path, tmp_path: Path) -> None:
        spec = json.loads((made.parent / "job.json").read_text())
        empty = write_rows(tmp_path / "empty", "trajectories.jsonl", [])
        job = make_job(tmp_path / "job", "model", spec["config"], {"corpus": [empty]})
        status, _, err = run_program(job, MODELS + "scratch")
        assert status == 1
        assert err.strip() == "model.scratch: the corpus has no text to train a tokenizer on"


class TestPath:
    @pytest.fixture
    def adopt(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> Adopt:
        """Runs the job's main program here: (exit status, standard error, data)."""

        def run(source: Path, chat_format: str = "tokenizer") -> tuple[int, str, Path]:
            digest = content_digest(Path(os.environ.get("AGENTC_SPEC_DIR", "."), source))
            config = {"path": str(source), "digest": digest, "chat_format": chat_format}
            job = make_job(tmp_path / "job", "model", config, {})
            monkeypatch.setattr("sys.argv", ["job_path", str(job)])
            return job_path.main(), capsys.readouterr().err, tmp_path / "job" / "data"

        return run

    def test_a_directory_is_copied_with_its_own_template(
        self, adopt: Adopt, made: Path, tmp_path: Path
    ) -> None:
        source = tmp_path / "source"
        shutil.copytree(made, source)
        (source / "README.md").write_text("not wanted")
        (source / "agentc_chat.json").unlink()
        status, err, data = adopt(source)
        assert status == 0, err
        assert json.loads((data / "agentc_chat.json").read_text()) == {"chat_format": "tokenizer"}
        found, expected = digests(data), digests(made)
        found.pop("agentc_chat.json"), expected.pop("agentc_chat.json")
        assert found == expected
        # A copy: what its owner does to the source later does not reach the store.
        assert (source / "model.safetensors").stat().st_nlink == 1

    def test_what_says_how_pictures_are_wanted_comes_along(
        self, adopt: Adopt, made: Path, tmp_path: Path
    ) -> None:
        source = tmp_path / "source"
        shutil.copytree(made, source)
        (source / "preprocessor_config.json").write_text('{"size": 224}')
        status, err, data = adopt(source)
        assert status == 0, err
        assert json.loads((data / "preprocessor_config.json").read_text()) == {"size": 224}

    def test_a_built_in_format_replaces_the_template(
        self, adopt: Adopt, made: Path, tmp_path: Path
    ) -> None:
        source = tmp_path / "source"
        shutil.copytree(made, source)
        (source / "chat_template.jinja").unlink()
        settings = json.loads((source / "tokenizer_config.json").read_text())
        settings["chat_template"] = "{{ messages }}"
        (source / "tokenizer_config.json").write_text(json.dumps(settings))
        status, err, data = adopt(source, "chatml")
        assert status == 0, err
        tokenizer = AutoTokenizer.from_pretrained(data)
        messages: Any = trajectories(1)[0]["messages"]
        text = tokenizer.apply_chat_template(messages, tokenize=False)
        assert text == render(format_named("chatml"), messages)

    def test_an_adopted_tokenizer_file_says_what_is_made_of_it(
        self, adopt: Adopt, tmp_path: Path
    ) -> None:
        source = small_model(tmp_path / "source", architecture="qwen2")
        written = json.loads((source / "tokenizer.json").read_text())
        written["pre_tokenizer"] = {
            "type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True,
        }  # fmt: skip
        (source / "tokenizer.json").write_text(json.dumps(written))
        status, err, data = adopt(source)
        assert status == 0, err
        text = "Craft 120 planks."
        ids = Tokenizer.from_file(str(data / "tokenizer.json")).encode(text).ids
        assert ids == AutoTokenizer.from_pretrained(source)(text).input_ids
        assert ids != Tokenizer.from_file(str(source / "tokenizer.json")).encode(text).ids

    def test_the_path_starts_at_the_spec(
        self, adopt: Adopt, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shutil.copytree(made, tmp_path / "models" / "tiny")
        monkeypatch.setenv("AGENTC_SPEC_DIR", str(tmp_path))
        status, err, data = adopt(Path("models/tiny"))
        assert status == 0, err
        assert (data / "model.safetensors").exists()

    def test_a_directory_that_changed_since_the_plan_is_refused(
        self,
        made: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        source = shutil.copytree(made, tmp_path / "source")
        digest = content_digest(source)
        weights = bytearray((source / "model.safetensors").read_bytes())
        weights[-1] ^= 1
        (source / "model.safetensors").write_bytes(weights)
        config = {"path": str(source), "digest": digest, "chat_format": "tokenizer"}
        job = make_job(tmp_path / "job", "model", config, {})
        monkeypatch.setattr("sys.argv", ["job_path", str(job)])
        assert job_path.main() == 1
        assert "has changed since the run was planned" in capsys.readouterr().err

    def test_pickled_weights_are_refused(self, adopt: Adopt, made: Path, tmp_path: Path) -> None:
        source = tmp_path / "source"
        shutil.copytree(made, source)
        (source / "model.safetensors").unlink()
        torch.save({}, source / "pytorch_model.bin")
        status, err, data = adopt(source)
        assert status == 1
        assert "found pytorch_model.bin, which can run code when read" in err
        assert "Traceback" not in err
        assert not list(data.iterdir())

    @pytest.mark.parametrize(
        ("remove", "message"),
        [("config.json", "not a model directory"), ("tokenizer.json", "fast tokenizer")],
    )
    def test_what_is_missing_is_said(
        self, adopt: Adopt, made: Path, tmp_path: Path, remove: str, message: str
    ) -> None:
        source = tmp_path / "source"
        shutil.copytree(made, source)
        (source / remove).unlink()
        status, err, _ = adopt(source)
        assert status == 1
        assert message in err

    def test_more_tokens_than_embeddings_are_refused(
        self, adopt: Adopt, made: Path, tmp_path: Path
    ) -> None:
        """Training would end at the first such token, by an index out of range."""
        source = shutil.copytree(made, tmp_path / "source")
        model = AutoModelForCausalLM.from_pretrained(source)
        tokens = model.config.vocab_size
        model.resize_token_embeddings(tokens - 2)
        model.save_pretrained(source)
        status, err, _ = adopt(source)
        assert status == 1
        assert f"the tokenizer has {tokens} tokens, the embeddings {tokens - 2} rows" in err
        assert "Traceback" not in err

    def test_a_format_that_the_tokenizer_cannot_write_is_refused(
        self, adopt: Adopt, made: Path, tmp_path: Path
    ) -> None:
        status, err, _ = adopt(made, "llama-2")
        assert status == 1
        assert "llama-2 needs the special tokens <s>, </s>" in err


class TestHub:
    """The real client, without a network: what the local cache holds works, the rest is said."""

    REVISION = "0123456789abcdef0123456789abcdef01234567"

    def run(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[int, str, Path]:
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
        monkeypatch.setenv("HF_HOME", str(tmp_path / "hub_home"))
        config = {"repo": "some/model", "revision": self.REVISION, "chat_format": "chatml"}
        job = make_job(tmp_path / "job", "model", config, {})
        status, _, err = launch(job, MODELS + "hf")
        return status, err, tmp_path / "job" / "data"

    @pytest.mark.slow
    def test_a_cached_snapshot_is_used(
        self, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        snapshots = tmp_path / "hub_home" / "hub" / "models--some--model" / "snapshots"
        shutil.copytree(made, snapshots / self.REVISION)
        status, err, data = self.run(tmp_path, monkeypatch)
        assert status == 0, err
        assert digests(data) == digests(made)
        assert facts(tmp_path / "job")["revision"] == self.REVISION

    def test_what_cannot_be_fetched_is_said(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        status, err, _ = self.run(tmp_path, monkeypatch)
        assert status == 1
        assert "is not in the local cache and the hub cannot be reached" in err
        assert "Traceback" not in err

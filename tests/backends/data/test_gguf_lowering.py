"""model.gguf: where the file may be from, and what the key of the model depends on."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from tests.support.gguf_files import write_gguf

from agentc.backend_api import load_backends
from agentc.compilation import Compilation, compile_spec

TABLE = load_backends()
SPEC = """
agentc: 1
name: converted
models: {base: MODEL}
environments: {craft: {backend: textcraft}}
servers: {local: {backend: transformers}}
prompts: {react: {instruction: Craft the goal.}}
stages:
  play:
    {kind: rollout, model: base, environment: craft, prompt: react, server: local, split: train,
     limit: 1, decode: {max_tokens: 16}}
"""
COMMIT = "0123456789" * 4


def compiled(folder: Path, model: str) -> Compilation:
    spec = folder / "spec.yaml"
    spec.write_text(SPEC.replace("MODEL", model))
    return compile_spec(spec, {}, TABLE)


def key(folder: Path, model: str) -> str:
    found = compiled(folder, model)
    assert found.plan is not None, [each.message for each in found.diagnostics]
    job = found.plan.by_id()["base"]
    assert job.draft.backend == "model.gguf"
    return job.key


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_gguf(tmp_path / "models" / "tiny.gguf")
    return tmp_path


def test_the_key_is_that_of_the_content(folder: Path) -> None:
    path = folder / "models" / "tiny.gguf"
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    local = key(folder, "{backend: gguf, path: models/tiny.gguf}")
    (folder / "elsewhere.gguf").write_bytes(path.read_bytes())
    hub = f"repo: a/b, revision: {COMMIT}, file: t.gguf"
    for same in (
        "path: elsewhere.gguf",
        f"path: elsewhere.gguf, sha256: {sha256}",
        f"package: tiny==1.0, file: tiny/t.gguf, sha256: {sha256}",
        f"{hub}, sha256: {sha256}",
    ):
        assert key(folder, f"{{backend: gguf, {same}}}") == local, same
    others = (
        "path: models/tiny.gguf, save_dtype: float32",
        "path: models/tiny.gguf, chat_format: chatml",
        hub,
        f"{hub.replace('t.gguf', 'u.gguf')}",
        f"package: tiny==1.0, file: tiny/t.gguf, sha256: {'0' * 64}",
    )
    keys = {key(folder, f"{{backend: gguf, {other}}}") for other in others}
    assert len(keys - {local}) == len(others)


def test_the_backend_follows_from_the_file(folder: Path) -> None:
    assert key(folder, "{path: models/tiny.gguf}") == key(folder, "./models/tiny.gguf")
    assert key(folder, f"{{package: tiny==1.0, file: t.gguf, sha256: {'0' * 64}}}")


@pytest.mark.parametrize(
    ("model", "code", "message"),
    [
        ("{backend: gguf}", "AGC603", "needs a file: `path`, or `file` with `repo` or `package`"),
        ("{backend: gguf, path: models}", "AGC603", "models is a folder"),
        ("{backend: gguf, path: none.gguf}", "AGC603", "there is no readable file none.gguf"),
        ("{backend: gguf, path: /etc/none.gguf}", "AGC123", "outside of the spec's folder"),
        ("{backend: path, path: models/tiny.gguf}", "AGC662", "not GGUF files of llama.cpp"),
        ("{backend: gguf, path: text.gguf}", "AGC662", "text.gguf is not a GGUF file"),
        (
            f"{{backend: gguf, path: models/tiny.gguf, sha256: {'0' * 64}}}",
            "AGC603",
            "has another SHA-256",
        ),
        (
            "{backend: gguf, package: tiny==1.0, file: t.gguf}",
            "AGC603",
            "a file of a package needs `sha256`",
        ),
        (f"{{backend: gguf, repo: a/b, revision: {COMMIT}}}", "AGC603", "the model names none"),
        (
            f"{{backend: gguf, repo: a/b, revision: {COMMIT}, file: t.gguf, path: a.gguf}}",
            "AGC603",
            "both say where the file is",
        ),
    ],
)
def test_what_is_rejected(folder: Path, model: str, code: str, message: str) -> None:
    (folder / "text.gguf").write_text("Weights are elsewhere.")
    errors = [e for e in compiled(folder, model).diagnostics if e.severity == "error"]
    assert [error.code for error in errors] == [code]
    assert message in errors[0].message


def test_a_path_of_the_other_backend_says_what_to_write(folder: Path) -> None:
    (error,) = compiled(folder, "{backend: path, path: models/tiny.gguf}").diagnostics[:1]
    assert "`backend: gguf`" in (error.fix or "")


def test_the_job_gets_a_digest_that_it_can_check(folder: Path) -> None:
    plan = compiled(folder, "{backend: gguf, path: models/tiny.gguf}").plan
    assert plan is not None
    draft = plan.by_id()["base"].draft
    inner = hashlib.sha256((folder / "models" / "tiny.gguf").read_bytes()).hexdigest()
    digest = hashlib.sha256(json.dumps([[".", inner]]).encode()).hexdigest()
    assert draft.config["digest"] == digest
    assert "network" not in draft.contract

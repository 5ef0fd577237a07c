"""Other tools' names of keys: accepted with a note, never beside the key that they mean."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentc.backend_api import BackendTable, load_backends
from agentc.compilation import compile_spec

SPEC = """agentc: 1
name: demo
models:
  base: {backend: hf, repo: meta-llama/Llama-2-7b-chat-hf,
         revision: f5db02db724555f92da89c216ac04704f23d4590}
environments:
  craft: {backend: textcraft}
servers:
  local: {backend: transformers}
prompts:
  react: {instruction: Craft the goal.}
stages:
  scores: {kind: evaluate, model: base, split: test}
"""


@pytest.fixture(scope="module")
def installed() -> BackendTable:
    """Every installed backend."""
    return load_backends()


def found(text: str, table: BackendTable, folder: Path) -> tuple[list[str], list[str]]:
    """What is reported of a spec, and the keys of its jobs."""
    spec = folder / "spec.yaml"
    spec.write_text(text)
    compiled = compile_spec(spec, {}, table)
    jobs = () if compiled.plan is None else compiled.plan.jobs
    reported = [f"{each.severity} {each.code}: {each.message}" for each in compiled.diagnostics]
    return reported, [job.key for job in jobs]


def test_an_alias_is_noted_and_changes_no_identity(installed: BackendTable, tmp_path: Path) -> None:
    reported, jobs = found(SPEC, installed, tmp_path)
    assert reported == []
    alias = SPEC.replace("model: base", "policy: base")
    assert found(alias, installed, tmp_path) == (
        ["note AGC215: `policy` is called `model` here"],
        jobs,
    )


@pytest.mark.parametrize("kind", ["sft", "dpo", "critic", "online_rl", "rollout"])
def test_what_rl_calls_a_policy(kind: str, installed: BackendTable, tmp_path: Path) -> None:
    stage = f"  it: {{kind: {kind}, policy: base}}\n"
    reported, _ = found(SPEC + stage, installed, tmp_path)
    assert "note AGC215: `policy` is called `model` here" in reported
    assert not [each for each in reported if "`policy`" in each and each.startswith("error")]


def test_an_alias_beside_its_key_is_an_error(installed: BackendTable, tmp_path: Path) -> None:
    both = SPEC.replace("model: base", "model: base, policy: base")
    reported, _ = found(both, installed, tmp_path)
    assert reported == [
        "error AGC104: stage `scores` of kind evaluate has `model` and its alias `policy`"
    ]

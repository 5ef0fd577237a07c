"""A run ends before anything is built where SLURM's queue or the package index does not answer."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentc.cli import main

SPEC = """
agentc: 1
name: demo
environments: {craft: {backend: textcraft}}
prompts: {react: {instruction: Craft the goal.}}
stages: {expert: {kind: expert, split: train, limit: 2}}
"""
SEARCH = """
agentc: 1
name: demo
params: {seed: {type: int, default: 0}}
environments: {craft: {backend: textcraft}}
prompts: {react: {instruction: Craft the goal.}}
servers: {local: {backend: transformers}}
models:
  base: {backend: scratch, hidden_size: 32, layers: 1, heads: 1, context: 2048, vocab_size: 320,
         corpus: games, chat_format: chatml, seed: "{{ seed }}"}
stages:
  games: {kind: expert, split: train, limit: 2}
  test: {kind: evaluate, model: base, split: test, placement: {gpus: 2}}
search: {over: {seed: {low: 0, high: 9}}, stage: test, trials: 2}
"""


@pytest.fixture(autouse=True)
def nothing_built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AGENTC_SOFTWARE", str(tmp_path / "software"))
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port of this machine where nobody listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def run(tmp_path: Path, spec: str, command: str, *words: str) -> int:
    file = tmp_path / "spec.yaml"
    file.write_text(spec)
    return main([command, str(file), "--store", str(tmp_path / "store"), "--plain", *words])


def slurm(folder: Path, squeue: str | None) -> str:
    """A profile of SLURM's, and a `squeue` that does this, in a folder for PATH."""
    (folder / "bin").mkdir()
    for name, text in (("sbatch", "exit 1"), ("squeue", squeue)):
        if text is not None:
            command = folder / "bin" / name
            command.write_text(f"#!/bin/sh\n{text}\n")
            command.chmod(0o755)
    profile = folder / "profile"
    profile.mkdir()
    (profile / "config.yaml").write_text("executor: slurm\n")
    return str(profile)


@pytest.mark.parametrize(
    ("squeue", "words"),
    [
        (None, "there is no `squeue` on this machine"),
        ("echo slurm_load_jobs error: Unable to contact >&2; exit 1", "Unable to contact"),
    ],
)
def test_no_queue(
    squeue: str | None,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    profile = slurm(tmp_path, squeue)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert run(tmp_path, SPEC, "run", "--profile", profile) == 7
    printed = capsys.readouterr()
    assert "submits jobs to SLURM, which does not answer" in printed.err
    assert words in printed.err
    assert f"spec.yaml --preflight --profile {profile} --store " in printed.err
    assert "building" not in printed.out
    assert not (tmp_path / "software").exists()


def test_no_package_index(
    closed_port: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("PIP_INDEX_URL", f"http://me:secret@127.0.0.1:{closed_port}/simple")
    assert run(tmp_path, SEARCH.replace("{gpus: 2}", "{gpus: 0}"), "run") == 7
    printed = capsys.readouterr().err
    address = f"http://127.0.0.1:{closed_port}/simple"
    assert f"the package index {address} cannot be reached: Connection refused" in printed
    assert "secret" not in printed


def test_a_search_checks_before_its_searcher_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.delenv("AGENTC_GPUS", raising=False)
    monkeypatch.setenv("PATH", os.defpath)  # no driver answers
    assert run(tmp_path, SEARCH, "search") == 7
    printed = capsys.readouterr()
    assert "  gpus: 2 GPUs requested, none found on this machine" in printed.err
    assert "building" not in printed.out

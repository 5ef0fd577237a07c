"""A real spec in a folder of its own, and a model hub on loopback."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from model_hub import Hub

HUB_SPEC = """\
agentc: 1
name: hub
environments:
  craft: {backend: textcraft}
models:
  llama: {backend: hf, repo: some/model, revision: main, chat_format: llama-2}
stages:
  expert: {kind: expert, split: train}
  sft: {kind: sft, model: llama, data: expert, lr: 1e-5, global_batch: 8, max_length: 512}
"""


@pytest.fixture
def spec(tmp_path: Path, repository: Path) -> Path:
    """The quickstart, copied: it names nothing of a network."""
    return Path(shutil.copy(repository / "specs" / "quickstart.yaml", tmp_path / "spec.yaml"))


@pytest.fixture
def hub_spec(tmp_path: Path) -> Path:
    """A spec whose model is `some/model` at the branch `main`."""
    path = tmp_path / "hub.yaml"
    path.write_text(HUB_SPEC)
    return path


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    one = Hub()
    monkeypatch.setenv("HF_ENDPOINT", one.url)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub_cache"))
    yield one
    one.close()

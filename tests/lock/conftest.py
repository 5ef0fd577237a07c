"""A real spec in a folder of its own, and a model hub on loopback."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from model_hub import Hub


@pytest.fixture
def spec(tmp_path: Path, repository: Path) -> Path:
    """The quickstart, copied: it names nothing of a network."""
    return Path(shutil.copy(repository / "specs" / "quickstart.yaml", tmp_path / "spec.yaml"))


@pytest.fixture
def hub_spec(tmp_path: Path, repository: Path) -> Path:
    """A spec whose model is `some/model` at the branch `main`."""
    text = (repository / "specs" / "eto" / "webshop.yaml").read_text()
    path = tmp_path / "hub.yaml"
    old = "f5db02db724555f92da89c216ac04704f23d4590"
    assert old in text
    text = text.replace("meta-llama/Llama-2-7b-chat-hf", "some/model")
    path.write_text(text.replace(old, "main"))
    return path


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    one = Hub()
    monkeypatch.setenv("HF_ENDPOINT", one.url)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    yield one
    one.close()

"""The real game, where its file and its interpreter are here; neither is agentc's to ship."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentc.runtime.software.lock_text import lock_digest
from agentc_backends.environments.detective.game import (
    DetectiveGame,
    Interpreters,
    LegalActionCache,
)
from agentc_backends.environments.detective.settings import DETECTIVE
from agentc_backends.software import JERICHO

REPOSITORY = Path(__file__).parents[3]
SHARED = Path(os.environ.get("AGENTC_SHARED", REPOSITORY.parent / "shared"))


@pytest.fixture(scope="session")
def story_file() -> Path:
    file = SHARED / "data" / "jericho" / "detective.z5"
    if not file.exists():
        pytest.skip(f"there is no game at {file}; set AGENTC_SHARED")
    return file


@pytest.fixture(scope="session")
def python() -> Path:
    folder = Path(os.environ.get("AGENTC_SOFTWARE", REPOSITORY / ".agentc" / "software"))
    digest = lock_digest(JERICHO.text)[:16]
    if not (folder / digest / "complete.json").exists():
        pytest.skip("the software stack `jericho` is not built (`agentc software sync`)")
    return folder / digest / "bin" / "python"


@contextmanager
def started(file: Path, python: Path, limit_s: float) -> Iterator[Interpreters]:
    with pytest.MonkeyPatch.context() as patch:
        paths = [str(REPOSITORY / part) for part in ("compiler", "backends")]
        patch.setenv("PYTHONPATH", os.pathsep.join(paths))
        running = Interpreters(
            file, DETECTIVE.scratch, processes=2, limit_s=limit_s, python=str(python)
        )
        yield running
        running.close()


@pytest.fixture(scope="module")  # not for the session: its PYTHONPATH would reach other tests
def interpreters(story_file: Path, python: Path) -> Iterator[Interpreters]:
    with started(story_file, python, 5.0) as running:
        yield running


@pytest.fixture
def impatient(story_file: Path, python: Path) -> Iterator[Interpreters]:
    """Interpreters that are ended after half a second of work."""
    with started(story_file, python, 0.5) as running:
        yield running


@pytest.fixture(scope="module")
def game(interpreters: Interpreters) -> DetectiveGame:
    return DetectiveGame(interpreters, LegalActionCache(None))

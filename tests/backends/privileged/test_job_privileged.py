"""Hidden texts: told by a server that was started for that, into a file of its owner alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.support.patience import PATIENCE_S

from agentc.runtime.contracts.artifacts import check_artifact

ROOT = Path(__file__).parents[3]
MODULE = "agentc_backends.agents.privileged.job_privileged"
GAME = "agentc_backends.environments.guessing_games.job_serve"
CONFIG = {"split": "train", "limit": 5}
SENTENCE = "The city to be guessed is: "


@contextmanager
def served(folder: Path, module: str, settings: dict[str, Any], *words: str) -> Iterator[Any]:
    """A lease of the environment, with its log."""
    folder.mkdir()
    ready, log, given = folder / "ready.json", folder / "log.txt", folder / "settings.json"
    given.write_text(json.dumps(settings))
    paths = os.pathsep.join(str(ROOT / name) for name in ("compiler", "backends"))
    command = [sys.executable, "-m", module, "--die-with-parent", "--ready-file", str(ready),
               "--settings", str(given), *words]  # fmt: skip
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, cwd=folder, stdout=out, stderr=out,
            env={**os.environ, "PYTHONPATH": paths, "AGENTC_TOKEN": "secret"},
        )  # fmt: skip
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not ready.exists():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        at = json.loads(ready.read_text("utf-8"))
        url = f"http://{at['host']}:{at['port']}"
        yield {"url": url, "token": "secret", "log": str(log)}
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def telling(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("servers") / "telling"
    with served(folder, GAME, {"game": "guess_my_city"}, "--privileged") as lease:
        yield lease


@pytest.fixture(scope="module")
def playing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("servers") / "playing"
    with served(folder, GAME, {"game": "guess_my_city"}) as lease:
        yield lease


def ask(lease: Any, body: Any, token: str = "secret") -> httpx2.Response:
    headers = {"Authorization": f"Bearer {token}"}
    return httpx2.post(lease["url"] + "/privileged", json=body, headers=headers, timeout=PATIENCE_S)


def test_one_text_for_each_task_in_a_private_file(run_job: Any, telling: Any) -> None:
    done = run_job(MODULE, CONFIG, leases={"environment": telling})
    assert done.code == 0, done.output
    check_artifact("PrivilegedInformation", done.data, {}, {}, done.facts)
    rows = done.rows("privileged.jsonl")
    assert len(rows) == 5
    for row in rows:
        assert row["id"] == row["task_id"]
        assert row["text"] == SENTENCE + row["task_id"]
        assert (row["split"], row["media"]) == ("train", "text/plain")
    assert (done.data / "privileged.jsonl").stat().st_mode & 0o777 == 0o600
    assert done.facts["texts"] == 5
    assert done.facts["characters"] == sum(len(row["text"]) for row in rows)


def test_nothing_but_the_file_has_a_text(run_job: Any, telling: Any) -> None:
    done = run_job(MODULE, {**CONFIG, "limit": None}, leases={"environment": telling})
    assert done.code == 0, done.output
    holding = [
        path.name
        for path in done.staging.rglob("*")
        if path.is_file() and SENTENCE.encode() in path.read_bytes()
    ]
    assert holding == ["privileged.jsonl"]
    assert SENTENCE not in done.output
    assert SENTENCE not in Path(telling["log"]).read_text()


def test_an_environment_that_is_played_tells_nothing(run_job: Any, playing: Any) -> None:
    answer = ask(playing, {"task_ids": ["Mumbai, India"]})
    assert answer.status_code == 403
    assert "--privileged" in answer.json()["error"]
    done = run_job(MODULE, CONFIG, leases={"environment": playing})
    assert done.code == 1
    assert "--privileged" in done.output
    assert not (done.data / "privileged.jsonl").exists()


def test_what_is_asked_wrongly(telling: Any) -> None:
    assert ask(telling, {"task_ids": ["Atlantis"]}).status_code == 404
    assert ask(telling, {"task_ids": [7]}).status_code == 422
    assert ask(telling, {}).status_code == 422
    assert ask(telling, {"task_ids": []}, token="wrong").status_code == 401


def test_an_environment_without_hidden_texts(tmp_path: Path) -> None:
    textcraft = "agentc_backends.environments.textcraft.job_serve"
    with served(tmp_path / "textcraft", textcraft, {}, "--privileged") as lease:
        answer = ask(lease, {"task_ids": []})
    assert answer.status_code == 501
    assert "privileged" in answer.json()["error"]

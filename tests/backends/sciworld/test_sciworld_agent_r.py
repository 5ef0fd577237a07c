"""Agent-R's stages on the real simulator: search, revision, SFT, evaluation, by `agentc run`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agentc.runtime.software.lock_text import lock_digest
from agentc_backends.software import SCIWORLD, TORCH

pytestmark = [pytest.mark.slow, pytest.mark.long]
SPEC = Path(__file__).with_name("agent_r.yaml")
REPOSITORY = Path(__file__).parents[3]


def test_agent_r_runs_on_the_simulator(tmp_path: Path) -> None:
    folder = Path(os.environ.get("AGENTC_SOFTWARE", REPOSITORY / ".agentc" / "software"))
    for software in (SCIWORLD, TORCH):
        digest = lock_digest(software.text)[:16]
        if not (folder / digest / "complete.json").exists():
            pytest.skip(f"the software stack `{software.name}` is not built")
    store = tmp_path / "store"
    command = [Path(sys.executable).with_name("agentc"), "run", SPEC, "--store", store, "--plain"]
    done = subprocess.run(
        command,
        env={**os.environ, "AGENTC_SOFTWARE": str(folder)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    trees = _rows(store, "search/*/data/trees.jsonl")
    assert {tree["end"] for tree in trees} == {"searched"}
    # Forks of the environment, some held against a replay, and scores between 0 and 1.
    assert all(tree["budget"]["forks"] for tree in trees)
    assert any(tree["budget"]["verified"] for tree in trees)
    rewards = {node["reward"] for tree in trees for node in tree["nodes"]}
    assert any(0 < reward < 1 for reward in rewards)
    assert _rows(store, "revise/*/data/rows.jsonl")


def _rows(store: Path, pattern: str) -> list[Any]:
    (file,) = (store / "objects").glob(pattern)
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]

"""Specs with env.detective: planned without the game's file, run with it by `agentc run`."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agentc.backend_api import load_backends
from agentc.compilation import compile_spec
from agentc.plan.job import Job
from agentc.runtime.software.lock_text import lock_digest
from agentc_backends.environments.detective.backend import BACKEND
from agentc_backends.environments.detective.settings import DETECTIVE
from agentc_backends.software import TORCH

SPEC = Path(__file__).with_name("evaluate.yaml")
PLAIN = "agentc: 1\nname: d\nenvironments: {{game: {{backend: detective{more}}}}}\n"
STAGE = "stages: {expert: {kind: expert, split: all}}\n"


def planned(folder: Path, more: str = "") -> tuple[Job | None, str]:
    """The one job of an expert stage, and what the compiler says."""
    spec = folder / "spec.yaml"
    spec.write_text(PLAIN.format(more=more) + STAGE, encoding="utf-8")
    found = compile_spec(spec, {}, load_backends())
    told = "\n".join(f"{one.message} {one.fix}" for one in found.diagnostics)
    return (None if found.plan is None else found.plan.jobs[0]), told


def test_a_spec_is_planned_without_the_game(tmp_path: Path) -> None:
    job, told = planned(tmp_path)
    assert job is not None, told
    (lease,) = job.draft.leases
    assert lease.identity["game_sha256"] == DETECTIVE.sha256
    assert lease.settings["sha256"] == DETECTIVE.sha256


def test_a_file_that_is_not_there_says_where_to_get_it(tmp_path: Path) -> None:
    job, told = planned(tmp_path, ", game: games/detective.z5")
    assert job is None
    assert "games/detective.z5" in told
    assert "agentc data fetch detective" in told
    assert DETECTIVE.sha256 in told


def test_another_game_is_named_by_its_content_and_needs_its_points(tmp_path: Path) -> None:
    (tmp_path / "zork.z5").write_bytes(b"another game")
    job, told = planned(tmp_path, ", game: zork.z5")
    assert job is None
    assert "give `points`" in told
    job, told = planned(tmp_path, ", game: zork.z5, points: 40, actions: free")
    assert job is not None, told
    assert (
        job.leases[0].draft.identity["game_sha256"] == hashlib.sha256(b"another game").hexdigest()
    )
    declared = BACKEND.under({"game": "zork.z5", "points": 40})
    assert declared.reward_range == (-40.0, 40.0)
    assert "expert" not in declared.capabilities


def test_the_key_follows_the_file_and_not_its_place(tmp_path: Path, story_file: Path) -> None:
    shutil.copy(story_file, tmp_path / "other.z5")
    job, told = planned(tmp_path)
    named, told_too = planned(tmp_path, ", game: other.z5")
    assert job is not None, told
    assert named is not None, told_too
    assert job.key == named.key


@pytest.mark.slow
def test_expert_and_players_run_on_the_real_game(
    tmp_path: Path, story_file: Path, python: Path
) -> None:
    digest = lock_digest(TORCH.text)[:16]
    if not (python.parents[2] / digest / "complete.json").exists():
        pytest.skip("the software stack `torch` is not built")
    shutil.copy(story_file, tmp_path)
    shutil.copy(SPEC, tmp_path)
    store = tmp_path / "store"
    command = [Path(sys.executable).with_name("agentc"), "run", SPEC.name]
    done = subprocess.run(
        [*command, "--store", store, "--plain"],
        env={**os.environ, "AGENTC_SOFTWARE": str(python.parents[2])},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (expert,) = _rows(store, "expert")
    assert (expert["reward"], expert["end"]) == (350, "success")
    metrics = [
        json.loads(file.read_text(encoding="utf-8"))
        for file in (store / "objects").glob("evaluate/*/data/metrics.json")
    ]
    told = {one["n"]: one["reward"]["mean"] for one in metrics}
    # The cheat gains what taking the paper gains, and nothing by its tricks.
    assert told[1] == 10
    assert 0 <= told[4] < 350
    assert all(one["success"]["mean"] == 0 and one["n_error"] == 0 for one in metrics)


def _rows(store: Path, kind: str) -> list[Any]:
    (file,) = (store / "objects").glob(f"{kind}/*/data/trajectories.jsonl")
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]

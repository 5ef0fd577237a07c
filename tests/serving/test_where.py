"""Where a stage's environment is: shown by `plan` and `explain`, and no part of a key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentc.cli import main

SPEC = """\
agentc: 1
name: where
environments: {craft: {backend: textcraft}, lab: {backend: sciworld}}
prompts: {react: {instruction: Act., reply_format: react}}
stages:
  here: {kind: expert, environment: craft, split: train, limit: 3}
  there: {kind: expert, environment: craft, split: train, limit: 3, environment_at: server}
  lab: {kind: expert, environment: lab, split: train, limit: 3}
"""


@pytest.fixture
def said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Any:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spec.yaml").write_text(SPEC, encoding="utf-8")

    def run(*words: str, code: int = 0) -> str:
        assert main([*words]) == code
        read = capsys.readouterr()
        return read.out + read.err

    return run


def test_it_is_shown_and_changes_no_key(said: Any, tmp_path: Path) -> None:
    assert "environment: craft, in the job's process" in said("explain", "here", "spec.yaml")
    assert "environment: craft, behind a server" in said("explain", "there", "spec.yaml")
    assert "environment: lab, behind a server" in said("explain", "lab", "spec.yaml")
    full = said("plan", "spec.yaml", "--full")
    assert "environment in the job's process: env.textcraft" in full
    assert "environment server: env.sciworld" in full
    said("bundle", "--bare", "spec.yaml", "-o", "out")
    plan = json.loads((tmp_path / "out" / "plan.json").read_text("utf-8"))
    jobs = {job["id"]: job for job in plan["jobs"]}
    assert jobs["here"]["key"] == jobs["there"]["key"]
    assert [jobs[n]["leases"][0]["port"] for n in ("here", "there")] == ["inside", "chosen"]

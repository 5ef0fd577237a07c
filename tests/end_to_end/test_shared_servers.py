"""Servers of scope `shared` with a real model server and a real environment: what is measured is
what it is with servers inside the jobs, also when a server is killed under its clients."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from smoke import agentc
from tests.support.patience import PATIENCE_S

SPEC = """\
agentc: 1
name: shared_tiny
environments:
  craft: {backend: textcraft, max_depth: 2, max_expert_steps: 4, distractors: 3%s}
servers:
  local: {backend: transformers%s}
prompts:
  react: {instruction: Craft the goal., reply_format: react_inline}
defaults:
  seed: 0
  decode: {max_tokens: 24, stop: ["\\n"]}
models:
  base: {backend: scratch, architecture: llama, hidden_size: 32, layers: 2, heads: 2, context: 640,
         vocab_size: 512, chat_format: chatml, corpus: [expert]}
stages:
  expert: {kind: expert, split: train, limit: 24}
  first: {kind: rollout, model: base, split: train, limit: 40, max_turns: 4, concurrency: 2}
  second: {kind: rollout, model: base, split: train, limit: 40, max_turns: 4, seed: 2,
           concurrency: 2}
  scores: {kind: evaluate, model: base, split: test, limit: 8, max_turns: 4, concurrency: 4}
"""
SHARED = (", scope: shared", ", scope: shared, replicas: 2")


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which the experiment ran with servers inside its jobs."""
    folder = tmp_path_factory.mktemp("alone")
    (folder / "spec.yaml").write_text(SPEC % ("", ""))
    agentc("run", folder / "spec.yaml", "--store", folder / "store", "--plain")
    return folder / "store"


def results(store: Path) -> dict[str, str]:
    """Trajectories and metrics by object."""
    wanted = ("trajectories.jsonl", "metrics.json")
    return {
        f"{path.parent.parent.parent.name}/{path.parent.parent.name}": path.read_text()
        for name in wanted
        for path in (store / "objects").glob(f"*/*/data/{name}")
    }


def server_states(store: Path) -> list[dict[str, Any]]:
    paths = sorted((store / "servers").glob("*/*/*/state.json"))
    return [json.loads(path.read_text()) for path in paths]


def processes_at(store: Path) -> list[str]:
    """Command lines of what runs with that store."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if str(store) in line:
                found.append(line)
    return found


@pytest.mark.slow
@pytest.mark.long
def test_results_are_those_of_servers_inside_the_jobs(alone: Path, tmp_path: Path) -> None:
    """Three jobs on one environment server and two copies of the model server; keys do not know."""
    spec, store = tmp_path / "spec.yaml", tmp_path / "store"
    spec.write_text(SPEC % SHARED)
    said = agentc("run", spec, "--store", store, "--plain")
    assert "server/local.base, copy 2: ready" in said
    assert results(store) == results(alone)
    assert len(results(store)) == 5
    assert {state["state"] for state in server_states(store)} == {"ended"}
    assert not processes_at(store)


@pytest.mark.slow
@pytest.mark.long
def test_killed_shared_server_changes_no_result(alone: Path, tmp_path: Path) -> None:
    """With -9, and the process that would have started it again with it. tests/runtime kills the
    server's program alone."""
    spec, store = tmp_path / "spec.yaml", tmp_path / "store"
    spec.write_text(SPEC % (", scope: shared", ", scope: shared"))
    argv = [str(Path(sys.executable).with_name("agentc")), "run", str(spec), "--plain"]
    argv += ["--store", str(store)]
    running = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    deadline = time.monotonic() + PATIENCE_S
    while len(list(store.glob("staging/rollout/*/*/episodes.jsonl"))) < 2:
        assert running.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    (endpoint,) = (
        path
        for path in (store / "servers").glob("*/*/1/endpoint.json")
        if "policy" in json.loads(path.read_text())["log"]
    )
    state = json.loads((endpoint.parent / "state.json").read_text())
    os.kill(state["pid"], signal.SIGKILL)
    said, _ = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 0, said
    assert results(store) == results(alone)
    assert not processes_at(store)

"""Agent-R at its smallest: search, revision, SFT by each trainer in its own software stack,
evaluation, in one iteration or two, on the real TextCraft server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from smoke import agentc, require_software

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One store: what precedes the trainers is made once."""
    return tmp_path_factory.mktemp("agent_r") / "store"


def run(
    repository: Path, store: Path, trainer: str, iterations: int = 1
) -> dict[str, dict[str, Any]]:
    """Run the smoke scale with a trainer; the jobs of its plan by id. One iteration is run up to
    its evaluation: what compares and reports is tested elsewhere."""
    spec = repository / "specs" / "agent_r" / "tiny.yaml"
    params = ("-p", f"trainer={trainer}", "-p", f"iterations={iterations}")
    until = ("--until", "agent_r.1.evaluate") if iterations == 1 else ()
    words = (spec, "--scale", "smoke", *params, "--store", store, *until)
    agentc("run", *words, "--plain")
    plan = json.loads(agentc("plan", *words, "--json"))
    assert not [job["id"] for job in plan["jobs"] if job["state"] == "run"]
    return {job["id"]: job for job in plan["jobs"]}


def data(store: Path, job: dict[str, Any]) -> Path:
    return store / "objects" / job["object"] / "data"


def rows(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


@pytest.mark.parametrize(
    # The other two are served and evaluated by tests of their own, and start much slower.
    ("trainer", "iterations"),
    [
        ("trl", 1),
        *(pytest.param(name, 2, marks=pytest.mark.long) for name in ("trl", "openrlhf", "xtuner")),
    ],
)
def test_iterations(repository: Path, store: Path, trainer: str, iterations: int) -> None:
    require_software(f"{trainer}.sft")
    jobs = run(repository, store, trainer, iterations)
    for iteration in range(1, iterations + 1):
        trees = list(rows(data(store, jobs[f"agent_r.{iteration}.search"]) / "trees.jsonl"))
        assert len(trees) == 6
        assert all(len(tree["nodes"]) > 1 for tree in trees)
        made = list(rows(data(store, jobs[f"agent_r.{iteration}.revise"]) / "rows.jsonl"))
        assert made
        trained = jobs[f"agent_r.{iteration}.sft"]
        manifest = json.loads(
            (data(store, trained).parent / "artifact.json").read_text(encoding="utf-8")
        )
        assert manifest["backend"] == f"{trainer}.sft"
        assert trainer in manifest["software"]["imported"]
        metrics = json.loads(
            (data(store, jobs[f"agent_r.{iteration}.evaluate"]) / "metrics.json").read_text("utf-8")
        )
        assert metrics["n"] == 16
        assert metrics["n_error"] == 0

"""Agent-R's graph at the paper's settings, on each of its environments, with numbers of the smoke
scale: search, revision, mixture, SFT by XTuner and evaluation run one after the other, in all three
iterations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from smoke import agentc, require_software

pytestmark = [pytest.mark.slow, pytest.mark.long]


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("webshop", "WebShop [SEP] Instruction:"),
        ("sciworld", "is called the"),
        ("textcraft", "Crafting commands:"),
    ],
)
def test_the_smoke_scale_runs(name: str, seen: str, repository: Path, tmp_path: Path) -> None:
    require_software("xtuner.sft")
    if name == "sciworld":
        require_software("env.sciworld")
    spec, store = repository / "specs" / "agent_r" / f"{name}.yaml", tmp_path / "store"
    words = (spec, "--scale", "smoke", "--store", store)
    agentc("run", *words, "--plain")
    jobs = {job["id"]: job for job in json.loads(agentc("plan", *words, "--json"))["jobs"]}
    assert not [name for name, job in jobs.items() if job["state"] == "run"]
    for iteration in (1, 2, 3):
        data = {
            name: store / "objects" / jobs[f"agent_r.{iteration}.{name}"]["object"] / "data"
            for name in ("search", "evaluate")
        }
        trees = (data["search"] / "trees.jsonl").read_text(encoding="utf-8").splitlines()
        assert len(trees) == 3
        assert all(seen in tree for tree in trees)
        metrics = json.loads((data["evaluate"] / "metrics.json").read_text(encoding="utf-8"))
        assert (metrics["n"], metrics["n_error"]) == (3, 0)

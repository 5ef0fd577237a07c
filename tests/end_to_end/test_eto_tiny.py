"""The `tiny` scale of ETO on WebShop and ALFWorld, made smaller still: every job runs, on the real
environments, and the tables come out. What the scale learns at its own size: notes/results.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from smoke import agentc, require_software

pytestmark = [pytest.mark.slow, pytest.mark.long]
ROUND = {"explore": {"limit": 4}, "dpo": {"max_steps": 1, "global_batch": 2, "micro_batch": 2}}


def smaller(spec: Path, target: Path) -> Path:
    """The spec with a few tasks and optimiser steps at its scale `tiny`."""
    content = yaml.safe_load(spec.read_text(encoding="utf-8"))
    tiny = content["scales"]["tiny"]
    stages: dict[str, Any] = tiny["stages"]
    rounds: dict[str, Any] = stages["eto"]["repeat"]["stages"]
    for table, names in ((stages, content["stages"]), (rounds, rounds_of(content))):
        for name in names:
            if name.startswith("evaluate"):
                table[name] = {**table.get(name, {}), "limit": 3}
    stages["expert"]["limit"] = 12
    stages["sft"] |= {"max_steps": 2, "global_batch": 4, "micro_batch": 4}
    for name, change in ROUND.items():
        rounds[name] |= change
    tiny["params"]["rounds"] = 1
    target.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    return target


def rounds_of(content: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = content["stages"]["eto"]["repeat"]["stages"]
    return found


@pytest.mark.parametrize(("name", "tables"), [("webshop", 1), ("alfworld", 2)])
def test_the_tiny_scale_runs_to_its_tables(
    repository: Path, tmp_path: Path, name: str, tables: int
) -> None:
    require_software("trl.sft")
    spec = smaller(repository / "specs" / "eto" / f"{name}.yaml", tmp_path / f"{name}.yaml")
    words = (spec, "--scale", "tiny", "--store", tmp_path / "store")
    agentc("run", *words, "--plain")
    jobs = json.loads(agentc("plan", *words, "--json"))["jobs"]
    assert {job["state"] for job in jobs} == {"cached"}
    data = {job["id"]: tmp_path / "store" / "objects" / job["object"] / "data" for job in jobs}
    compared = [data[job["id"]] for job in jobs if job["kind"] == "compare"]
    assert len(compared) == tables
    for folder in compared:
        rows = json.loads((folder / "comparison.json").read_text("utf-8"))["rows"]
        assert [row["n"] for row in rows] == [3, 3]
        assert all(row["n_error"] == 0 for row in rows)
    verdicts = json.loads((data["claims"] / "claims.json").read_text("utf-8"))["claims"]
    assert {verdict["verdict"] for verdict in verdicts} == {"not judged"}

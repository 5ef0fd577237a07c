"""Edits of a finished experiment: only what depends on an edit runs again, and agentc says so."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml
from smoke import Smoke, agentc, starts

pytestmark = [pytest.mark.slow, pytest.mark.long]


@pytest.fixture
def finished(smoke: Smoke, tmp_path: Path) -> Path:
    """A store of its own with the smoke run in it."""
    return shutil.copytree(smoke.store, tmp_path / "store", symlinks=True)


def test_another_beta_in_round_two(smoke: Smoke, finished: Path, tmp_path: Path) -> None:
    spec = yaml.safe_load(smoke.spec.read_text(encoding="utf-8"))
    spec["stages"]["eto"]["with"]["later_beta"] = 0.5
    edited = tmp_path / "edited.yaml"
    edited.write_text(yaml.safe_dump(spec, sort_keys=False), encoding="utf-8")

    plan = json.loads(agentc("plan", edited, "--store", finished, "--json"))
    announced = {job["id"] for job in plan["jobs"] if job["state"] == "run"}
    assert announced == {
        "eto.2.dpo", "eto.2.evaluate:rollout", "eto.2.evaluate", "results", "report",
    }  # fmt: skip

    before = starts(finished)
    agentc("run", edited, "--store", finished, "--plain")
    after = starts(finished)
    assert {name: after[name] for name in before} == before
    made = sorted(name.split("/")[0] for name in after.keys() - before.keys())
    assert [kind for kind in made if kind != "session"] == [
        "compare", "dpo", "evaluate", "report", "rollout",
    ]  # fmt: skip

    reason = agentc("why", "eto.2.evaluate", "--store", finished)
    assert "beta" in reason
    assert "0.5" in reason
    assert "eto.2.dpo" in reason


def test_another_experiment_shares_the_sft(smoke: Smoke, finished: Path, tmp_path: Path) -> None:
    """Another name, other stages after SFT, other names of stages: SFT isn't trained again."""
    spec = yaml.safe_load(smoke.spec.read_text(encoding="utf-8"))
    spec["name"] = "cloning"
    del spec["scales"]
    stages = spec["stages"]
    del stages["eto"], stages["evaluate_untrained"]
    stages["cloned"] = stages.pop("sft")
    evaluation = stages.pop("evaluate_sft")
    stages["evaluate_cloned"] = {**evaluation, "with": {"model": "cloned"}, "max_turns": 4}
    stages["results"] = {"kind": "compare", "of": ["evaluate_cloned"]}
    other = tmp_path / "cloning.yaml"
    other.write_text(yaml.safe_dump(spec, sort_keys=False), encoding="utf-8")
    before = starts(finished)
    agentc("run", other, "--store", finished, "--plain")
    after = starts(finished)
    assert {name: after[name] for name in before} == before
    made = sorted(name.split("/")[0] for name in after.keys() - before.keys())
    assert [kind for kind in made if kind != "session"] == [
        "compare", "evaluate", "report", "rollout",
    ]  # fmt: skip

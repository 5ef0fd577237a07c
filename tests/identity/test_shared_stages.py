"""Specs that go on from another spec's stages share their keys: what one of them made in a store,
the other finds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentc.backend_api import load_backends
from agentc.compilation import compile_spec
from agentc.plan.render import plan_document
from agentc_backends.environments.textcraft.environment import TextCraftEnvironment
from agentc_backends.environments.textcraft.settings import TextCraftSettings

_OF_ALL = ("report", "compare", "verdicts")
"""Kinds whose stages look at every evaluation of a spec."""


def test_grpo_beside_eto_shares_the_quickstarts_stages(repository: Path) -> None:
    alone = jobs_of(repository / "specs" / "quickstart.yaml", seed="3")
    beside = jobs_of(repository / "specs" / "compare" / "eto_grpo.yaml", seed="3")
    shared = {name: job["key"] for name, job in alone.items() if job["kind"] not in _OF_ALL}
    assert {name: beside[name]["key"] for name in shared} == shared


def test_grpo_plays_as_many_episodes_as_eto_explores(repository: Path) -> None:
    """At any number of rounds; ETO's are so many attempts at each goal of the split."""
    goals = TextCraftEnvironment(TextCraftSettings(max_depth=2, max_expert_steps=4)).tasks("train")
    for rounds in (1, 2, 3):
        jobs = jobs_of(repository / "specs" / "compare" / "eto_grpo.yaml", rounds=str(rounds))
        explored = [job["config"] for name, job in jobs.items() if name.endswith(".explore")]
        grpo = jobs["grpo"]["config"]
        assert len(explored) == rounds
        assert grpo["iterations"] * grpo["episodes"] == sum(
            each["attempts"] * len(goals) for each in explored
        )


def jobs_of(spec: Path, **params: str) -> dict[str, Mapping[str, Any]]:
    """The jobs of a spec's plan, by id."""
    plan = compile_spec(spec, params, load_backends()).plan
    assert plan is not None
    document: Mapping[str, Any] = plan_document(plan)
    return {job["id"]: job for job in document["jobs"]}

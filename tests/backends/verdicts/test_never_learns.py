"""No bundled spec has a claim about curves that a policy which never learns reproduces: its curve
is its start and noise."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from agentc.backend_api import load_backends
from agentc.compilation import compile_spec
from agentc.plan.render import plan_document
from agentc_backends.results.verdicts.claims import judge_all
from agentc_backends.results.verdicts.rules import VerdictRules

SPECS = Path(__file__).parents[3] / "specs"
RULES = VerdictRules(confidence=0.95, power=0.8)
WITH_CURVES = sorted(
    str(path.relative_to(SPECS)) for path in SPECS.rglob("*.yaml") if "reach:" in path.read_text()
)
LONGEST = 150
"""Iterations: a longer curve of the same noise takes the test longer."""


@cache
def planned(name: str) -> Mapping[str, Any]:
    plan = compile_spec(SPECS / name, {}, load_backends()).plan
    assert plan is not None
    return plan_document(plan)


def claims_of(name: str) -> list[Mapping[str, Any]]:
    judges = [job for job in planned(name)["jobs"] if job["kind"] == "verdicts"]
    return [one for job in judges for one in job["config"]["claims"] if one.get("reach")]


def runs_of(claim: Mapping[str, Any]) -> set[str]:
    pairs = claim.get("runs") or [(claim["stage"], claim["difference_from"])]
    return {stage for pair in pairs for stage in pair if stage is not None}


def flat_curve(
    settings: Mapping[str, Any], mean: float, sd: float, chance: random.Random
) -> dict[str, Any]:
    """The rows of a run that plays and updates as its settings say, and stays what it is."""
    episodes, warmup = settings["episodes"], settings["warmup"]
    return {
        "curve": [
            {
                "iteration": at,
                "trajectories": episodes * (at + 1),
                "steps": 20 * episodes * (at + 1),
                "reply_tokens": 200 * episodes * (at + 1),
                "return": {
                    "mean": chance.gauss(mean, sd / math.sqrt(episodes)), "sd": sd, "n": episodes,
                },
                **({"actor": {}} if at >= warmup else {}),
            }
            for at in range(min(settings["iterations"], LONGEST))
        ]
    }  # fmt: skip


def test_some_specs_have_such_claims() -> None:
    assert "archer/twenty_questions.yaml" in WITH_CURVES
    assert all(claims_of(name) for name in WITH_CURVES)


@pytest.mark.parametrize("name", WITH_CURVES)
@pytest.mark.parametrize("below", [1.0, 0.1, 0.02, -0.02, -0.1])
def test_a_policy_that_never_learns_supports_no_claim(name: str, below: float) -> None:
    """Wherever it starts: `below` is how far below the return that is to be reached, in standard
    deviations of a game."""
    config = {job["id"]: job["config"] for job in planned(name)["jobs"]}
    sd, found = 5.0, Counter[str]()
    for claim in claims_of(name):
        for seed in range(30):
            chance = random.Random(f"{name} {claim['name']} {below} {seed}")
            metrics = {
                run: flat_curve(config[run], claim["reach"] - below * sd, sd, chance)
                for run in sorted(runs_of(claim))
            }
            [entry] = judge_all([claim], metrics, RULES, None)
            found[entry["verdict"]] += 1
            if below < 0 and entry["verdict"] == "not judged":
                assert "before anything is learned" in entry["because"]
    assert not found["supported"], found


def test_at_the_start_of_the_paper_minus_17_is_no_reach() -> None:
    """The start of Twenty Questions has -17.1: the claim is about a return that it does not have,
    even by the noise of 128 games."""
    [claim] = claims_of("archer/twenty_questions.yaml")
    assert claim["reach"] - -17.1 > 2 * 5 / math.sqrt(128)

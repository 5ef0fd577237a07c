"""Health: from the facts of a stage to one line on what it did not learn."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from agentc.runtime import health
from agentc.runtime.health import HealthFinding, StageFacts, finding_lines, findings, stage_facts

ROOT = Path(__file__).parents[2]

PLAYED = {
    "episodes": 390, "errors": 0, "ends": {"overflow": 390}, "stops": {"stop": 4290},
    "turns": 4290, "invalid": 12, "successes": 0, "reward_mean": 0.0, "reward_least": 0.0,
    "reward_most": 0.0,
}  # fmt: skip
FINE = {
    "episodes": 120, "errors": 1, "ends": {"success": 40, "failure": 60, "limit": 19, "error": 1},
    "stops": {"stop": 900, "length": 20}, "turns": 920, "invalid": 30, "successes": 40,
    "reward_least": 0.0, "reward_most": 1.0,
}  # fmt: skip
TRAINED = {
    "rows": 200, "dropped": 3, "truncated": 0, "steps": 50, "unchanged": False,
    "losses": {"steps": 50, "not_finite": 0, "least": 0.2, "most": 1.9, "last": 0.3},
    "gradients": {"steps": 50, "least": 0.2, "most": 4.0, "clipped": 20},
}  # fmt: skip

CASES: dict[str, tuple[dict[str, Any], str | None]] = {
    "every episode overflows": (
        PLAYED, "390 of 390 episodes (100%) end by overflow: the prompt fills the context"),
    "every reward is zero": (PLAYED, "rewards have no variance: 0 in all of 390 episodes"),
    "a good rollout": (FINE, None),
    "every episode succeeds": (
        {**FINE, "ends": {"success": 120}, "successes": 120, "reward_least": 1.0}, None),
    "no success": ({**FINE, "successes": 0, "reward_most": 0.5},
                   "0 of 120 episodes succeed, best reward 0.5"),
    "few episodes": ({**PLAYED, "episodes": 4, "ends": {"failure": 4}, "invalid": 0}, None),
    "limit": ({**FINE, "ends": {"limit": 80, "failure": 40}},
              "80 of 120 episodes (67%) end at the limit of their turns"),
    "errors": ({**FINE, "ends": {"failure": 110, "error": 10}},
               "10 of 120 episodes (8%) are lost to infrastructure errors"),
    "invalid": ({**FINE, "invalid": 500}, "500 of 920 replies (54%) hold no action"),
    "cut": ({**FINE, "stops": {"stop": 420, "length": 500}},
            "500 of 920 replies (54%) are truncated"),
    "a good training": (TRAINED, None),
    "an old manifest": ({"rows": 200, "steps": 50}, None),
    "equal to its start": (
        {**TRAINED, "unchanged": True},
        "the policy is equal to its start: no weight changed in 50 steps"),
    "kept": ({"kept_model": True, "kept_because": "no rows to train on", "steps": 0},
             "nothing was trained, the model is its start (no rows to train on)"),
    "filter keeps none": (
        {**TRAINED, "min_reward": 1.0, "played": 120, "played_kept": 0, "played_best": 0.5},
        "0 of 120 episodes reach min_reward 1, best 0.5"),
    "filter keeps all": (
        {**TRAINED, "min_reward": 0.0, "played": 120, "played_kept": 120, "played_best": 0.5},
        "all of 120 episodes reach min_reward 0: the filter leaves none out"),
    "filter keeps some": (
        {**TRAINED, "min_reward": 1.0, "played": 120, "played_kept": 7, "played_best": 1.0}, None),
    "no pairs": ({"pairs": 0, "win": 0, "tie": 30, "lose": 0, "distinct": 0},
                 "no pairs: 0 pairs of 30 comparisons"),
    "the same pair again": ({"pairs": 12, "distinct": 1, "win": 12},
                            "identical pairs: 12 pairs, 1 of them distinct"),
    "different pairs": ({"pairs": 12, "distinct": 11, "win": 12}, None),
    "equal sides": ({**TRAINED, "identical": 200},
                    "identical pairs: both sides of 200 of 200 pairs are the same tokens"),
    "NaN": ({**TRAINED, "losses": {**TRAINED["losses"], "not_finite": 3}},
            "the loss is NaN or infinite in 3 of 50 logged steps"),
    "all NaN": ({**TRAINED, "losses": {"steps": 50, "not_finite": 50, "least": None, "most": None,
                                       "last": None}},
                "the loss is NaN or infinite in 50 of 50 logged steps"),
    "same loss": ({**TRAINED, "losses": {"steps": 50, "not_finite": 0, "least": 0.6931,
                                         "most": 0.6931, "last": 0.6931}},
                  "the loss never changes: 0.6931 in 50 logged steps"),
    "no loss": ({**TRAINED, "losses": {**TRAINED["losses"], "least": 1e-7, "last": 1.8e-7}},
                "the loss is near zero: 1.8e-07 in the last quarter of 50 logged steps"),
    "two steps": ({**TRAINED, "losses": {"steps": 2, "not_finite": 0, "least": 0.5, "most": 0.5,
                                         "last": 0.5}}, None),
    "no gradient": ({**TRAINED, "gradients": {"steps": 50, "least": 0.0, "most": 0.0,
                                              "clipped": 0}},
                    "the gradient is zero in all of 50 logged steps"),
    "always clipped": ({**TRAINED, "gradients": {"steps": 50, "least": 7.0, "most": 90.0,
                                                 "clipped": 50}},
                       "the gradient is clipped in all of 50 logged steps, its least norm is 7"),
    "dropped": ({**TRAINED, "dropped": 50},
                "50 of 250 rows (20%) are dropped: they are longer than max_length"),
    "masked": ({**TRAINED, "dropped": 50, "masked": 50},
               "50 of 250 rows (20%) are fully masked: none of their tokens is trained"),
    "truncated": ({**TRAINED, "truncated": 100},
                  "100 of 203 rows (49%) are truncated to max_length"),
    "unmoved": ({"rows": 3, "baseline": "sft", "unmoved": ["rft"]},
                "nothing moved: rft has 0 tasks better and 0 worse than sft"),
    "flat critic": ({"ranked": 40, "flat": 40},
                    "the critic scores all candidates alike in all of 40 turns"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_facts_and_what_is_wrong_with_them(name: str) -> None:
    facts, expected = CASES[name]
    found = findings([StageFacts("stage", "any", facts)])
    if expected is None:
        assert found == []
    else:
        assert expected in [one.what for one in found]
        assert all(one.where and "\n" not in one.line for one in found)


def test_the_gravest_comes_first_and_a_manifest_without_facts_is_well() -> None:
    stages = [
        StageFacts("explore", "rollout", PLAYED),
        StageFacts("dpo", "dpo", {**TRAINED, "unchanged": True}),
    ]
    assert [one.stage for one in findings(stages)] == ["dpo", "explore", "explore"]
    for manifest in ({}, {"facts": None}, {"facts": {"ends": [], "losses": 3, "rows": "x"}}):
        assert findings([stage_facts("s", manifest)]) == []


def test_a_run_shows_five_lines_and_how_many_more_there_are() -> None:
    found = [HealthFinding(str(number), "what", "where") for number in range(8)]
    lines = finding_lines(found, "`agentc status` shows them")
    assert lines[:2] == ["0: what; where", "1: what; where"]
    assert lines[5:] == ["3 more: `agentc status` shows them"]
    assert finding_lines(found[:5], "")[-1] == "4: what; where"


def test_the_page_has_every_threshold() -> None:
    page = (ROOT / "docs" / "health.md").read_text(encoding="utf-8")
    thresholds = {
        name: value
        for name, value in vars(health).items()
        if re.fullmatch(r"[A-Z_]+", name) and isinstance(value, int | float)
    }
    assert thresholds
    for name, value in thresholds.items():
        assert f"| `{name}` | {value:g} |" in page, name

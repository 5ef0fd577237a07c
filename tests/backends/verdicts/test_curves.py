"""Claims about curves: of one run by its games, of several by their spread, and of runs that never
get there, which are bounds."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentc.run.claims import render_verdicts
from agentc.runtime.contracts.artifacts import check_artifact
from agentc_backends.results.verdicts.claims import judge_all
from agentc_backends.results.verdicts.rules import VerdictRules

RULES = VerdictRules(confidence=0.95, power=0.8)


def claim(**changes: Any) -> dict[str, Any]:
    return {
        "name": "samples",
        "what": "ArCHer reaches -17 with at most a tenth of what PPO takes",
        "table": None,
        "stage": "archer",
        "difference_from": "ppo",
        "metric": "trajectories_to",
        "reach": -17,
        "relation": "below",
        "value": 0.1,
        "tolerance": None,
        "n": None,
        "seeds": None,
        "percent": False,
        "gate": False,
        **changes,
    }


def run(after: int, points: int = 40, sd: float = 1.0) -> dict[str, Any]:
    """A run that jumps from -20 to -10 at a point, counted from 0; 100 trajectories a point."""
    means = [-20.0 if at < after else -10.0 for at in range(points)]
    return {
        "curve": [
            {
                "iteration": at,
                "trajectories": 100 * (at + 1),
                "steps": 1000 * (at + 1),
                "return": {"mean": mean, "sd": sd, "n": 100},
            }
            for at, mean in enumerate(means)
        ]
    }


def judged(of: dict[str, Any], **metrics: dict[str, Any]) -> dict[str, Any]:
    [entry] = judge_all([of], metrics, RULES, None)
    return entry


def test_a_ratio_of_single_runs_is_judged_by_their_games() -> None:
    # The first three points in a row with one at -10 are enough: the fourth, the 37th.
    found = judged(claim(value=0.11), archer=run(3), ppo=run(36))
    assert found["verdict"] == "supported"
    assert found["observed"]["mean"] == pytest.approx(400 / 3700)
    assert found["observed"]["method"] == "games"
    assert "another seed trains otherwise" in found["because"]
    close = judged(claim(value=400 / 3700), archer=run(3), ppo=run(36))
    assert close["verdict"] == "inconclusive"
    other = judged(claim(relation="above", value=0.11), archer=run(3), ppo=run(36))
    assert other["verdict"] == "contradicted"


def test_noise_of_the_games_widens_what_one_run_says() -> None:
    found = judged(claim(value=0.5), archer=run(10, sd=60.0), ppo=run(36, sd=60.0))
    observed = found["observed"]
    assert observed["mean"] == pytest.approx(1100 / 3700)
    assert observed["low"] < observed["mean"] < 0.5
    assert observed["high"] is None or observed["high"] > 0.5
    assert found["verdict"] == "inconclusive"


def test_a_rival_that_never_gets_there_makes_a_bound_that_can_be_enough() -> None:
    found = judged(claim(value=0.11), archer=run(3), ppo=run(40))
    assert found["observed"] == {
        "mean": pytest.approx(400 / 4000),
        "low": 0.0,
        "high": pytest.approx(400 / 4000),
        "bound": "below",
        "confidence": 0.95,
        "n": 1,
        "method": "games",
    }
    assert found["verdict"] == "supported"
    assert "ppo did not get there within 4000 trajectories" in found["because"]
    # What is only known to be smaller is never shown to be larger, nor what is larger, smaller.
    assert judged(claim(value=0.01), archer=run(3), ppo=run(40))["verdict"] == "inconclusive"
    slow = judged(claim(value=20.0), archer=run(40), ppo=run(3))
    assert (slow["verdict"], slow["observed"]["high"]) == ("inconclusive", None)
    assert slow["observed"]["bound"] == "above"
    assert judged(claim(value=2.0), archer=run(40), ppo=run(3))["verdict"] == "contradicted"


def test_where_neither_gets_there_nothing_is_judged() -> None:
    found = judged(claim(), archer=run(40), ppo=run(40))
    assert (found["verdict"], found["observed"]) == ("not judged", None)
    assert "nothing is known of how they compare" in found["because"]


def test_a_count_by_itself_and_in_steps() -> None:
    alone = claim(difference_from=None, metric="steps_to", value=5000)
    found = judged(alone, archer=run(3))
    assert (found["verdict"], found["observed"]["mean"]) == ("supported", 4000)
    never = judged(alone, archer=run(40))
    assert (never["verdict"], never["observed"]["mean"]) == ("contradicted", 40_000)
    assert never["observed"]["bound"] == "above"


def pooled(*pairs: tuple[int, int]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A claim over seeds, and the runs of each."""
    runs = [[f"archer@seed={n}", f"ppo@seed={n}"] for n in range(len(pairs))]
    metrics = {
        name: run(after)
        for names, both in zip(runs, pairs, strict=True)
        for name, after in zip(names, both, strict=True)
    }
    return claim(runs=runs, value=0.5), metrics


def test_over_seeds_the_spread_of_the_runs_decides() -> None:
    of, metrics = pooled((3, 30), (4, 32), (3, 34), (4, 30))
    found = judged(of, **metrics)
    assert (found["verdict"], found["observed"]["method"]) == ("supported", "mean")
    product = 4 / 31 * 5 / 33 * 4 / 35 * 5 / 31
    assert found["observed"]["mean"] == pytest.approx(product**0.25)
    apart, metrics = pooled((3, 30), (30, 12), (3, 34))
    found = judged(apart, **metrics)
    assert found["verdict"] == "inconclusive"
    assert "it lies below the number in 2 of 3 runs" in found["because"]


def test_a_few_seeds_of_which_one_never_got_there_have_no_interval() -> None:
    of, metrics = pooled((3, 30), (3, 40), (4, 32))
    found = judged(of, **metrics)
    assert (found["verdict"], found["observed"]["high"]) == ("inconclusive", None)
    assert "ppo did not get there in 1 of 3 runs within 4000 trajectories" in found["because"]
    assert "it lies below the number in 3 of 3 runs" in found["because"]
    of, metrics = pooled(*[(3, 40)] * 6)
    assert judged(of, **metrics)["verdict"] == "supported"


def test_at_a_reduced_scale_numbers_are_shown_and_nothing_is_judged() -> None:
    [found] = judge_all([claim()], {"archer": run(3), "ppo": run(36)}, RULES, "smoke")
    assert (found["verdict"], found["observed"] is None) == ("not judged", False)


def test_the_job_reads_curves_and_people_see_bounds(
    run_job: Callable[..., Any], tmp_path: Path
) -> None:
    folders = []
    for name, after in (("archer", 3), ("ppo", 40)):
        folders.append(tmp_path / name)
        folders[-1].mkdir()
        rows = run(after)["curve"]
        (folders[-1] / "curve.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    slow = claim(name="slow", stage="ppo", difference_from=None, relation="above", value=3000)
    config = {
        "claims": [claim(), slow],
        "stages": ["archer", "ppo"],
        "scale": None,
        "confidence": 0.95,
        "power": 0.8,
    }
    done = run_job("agentc_backends.results.verdicts.job_verdicts", config, inputs={"of": folders})
    assert done.code == 0, done.output
    check_artifact("Verdicts", done.data, {}, {}, done.facts)
    shown = render_verdicts(json.loads((done.data / "claims.json").read_text()), colour=False)
    assert "below 0.1 <=0.1 [0, 0.1] 1 run inconclusive" in " ".join(shown.split())
    assert ">=4000 [4000, open] 1 run" in shown

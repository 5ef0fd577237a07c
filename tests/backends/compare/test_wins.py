"""Win rates (oracle E12): ties count a half and are reported apart, in tables and in claims."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.backends.compare.test_comparison import CONFIDENCE, metrics
from tests.backends.verdicts.test_verdicts import claim, share, verdict

from agentc.runtime.contracts.artifacts import check_artifact
from agentc_backends.results.compare.comparison import compare, wins_of
from agentc_backends.statistics.intervals import t_quantile, wilson

A = {"x": 0.8, "y": 0.7, "z": 0.6}
B = {"x": 0.7, "y": 0.7, "z": 0.9}


def rate(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    found = wins_of(metrics(one), metrics(other), CONFIDENCE)
    assert found is not None
    return found


def test_e12_a_tie_is_a_half() -> None:
    found = rate(A, B)
    assert (found["wins"], found["ties"], found["losses"]) == (1, 1, 1)
    assert found["mean"] == 0.5
    assert found["wins"] / found["n"] == pytest.approx(0.333, abs=1e-3)
    assert 0 <= found["low"] < 0.5 < found["high"] <= 1


def test_e12_against_itself() -> None:
    found = rate(A, A)
    assert (found["mean"], found["ties"]) == (0.5, 3)


def test_the_other_side_has_the_rest() -> None:
    one, other = rate({**A, "u": 1.0}, {**B, "u": 0.0}), rate({**B, "u": 0.0}, {**A, "u": 1.0})
    assert one["mean"] + other["mean"] == 1.0
    assert one["low"] == pytest.approx(1 - other["high"])


def test_without_ties_it_is_a_share_with_the_interval_of_one() -> None:
    """Wilson's at Student's quantile, as every share has it: 241 of 500 tasks."""
    ours = {str(n): float(n < 241) for n in range(500)}
    found = rate(ours, dict.fromkeys(ours, 0.5))
    low, high = wilson(0.482, 500, t_quantile(0.975, 499))
    assert (found["low"], found["high"]) == (
        pytest.approx(low, abs=1e-6),
        pytest.approx(high, abs=1e-6),
    )
    assert (round(low, 3), round(high, 3)) == (0.438, 0.526)


def test_a_rounding_error_is_no_win() -> None:
    assert rate({"x": 0.1 + 0.2}, {"x": 0.3})["ties"] == 1


def test_tasks_without_a_score_are_no_losses() -> None:
    found = rate({"x": 1.0, "y": None}, {"x": 0.0, "y": 1.0})
    assert (found["n"], found["wins"], found["losses"]) == (1, 1, 0)
    assert wins_of(metrics({"x": None}), metrics({"x": 1.0}), CONFIDENCE) is None


def test_a_comparison_has_them_where_they_are_asked_for(run_job: Any, tmp_path: Path) -> None:
    folders = []
    for name, scores in (("gpt", B), ("sweet", A)):
        folders.append(tmp_path / name)
        folders[-1].mkdir()
        (folders[-1] / "metrics.json").write_text(json.dumps(metrics(scores)), encoding="utf-8")
    config = {"names": ["gpt", "sweet"], "baseline_name": "gpt", "confidence": 0.95}
    module = "agentc_backends.results.compare.job_compare"
    done = run_job(module, {**config, "wins": True}, inputs={"of": folders})
    assert done.code == 0, done.output
    check_artifact("Comparison", done.data, {}, {}, done.facts)
    table = json.loads((done.data / "comparison.json").read_text("utf-8"))
    baseline, sweet = table["rows"]
    assert baseline["wins"] is None
    assert sweet["wins"] == rate(A, B)
    plain = run_job(module, config, inputs={"of": folders}, staging=tmp_path / "plain")
    table = json.loads((plain.data / "comparison.json").read_text("utf-8"))
    assert all("wins" not in row for row in table["rows"])


def test_a_comparison_without_wins_is_as_it_was() -> None:
    one, other = ("gpt", metrics(B)), ("sweet", metrics(A))
    with_wins = compare([one, other], one, CONFIDENCE, wins=True)
    for row in with_wins["rows"]:
        del row["wins"]
    assert with_wins == compare([one, other], one, CONFIDENCE)


@pytest.mark.parametrize(
    ("won", "said", "expected"),
    [
        (241, {"value": 0.482, "n": 500}, "reproduced"),
        (225, {"value": 0.482, "n": 500}, "inconclusive"),
        (241, {"value": 0.482, "n": 500, "tolerance": 0.1}, "reproduced"),
        (100, {"value": 0.482, "n": 500}, "not reproduced"),
        (300, {"relation": "above", "value": 0.5, "n": None}, "supported"),
        (250, {"relation": "above", "value": 0.5, "n": None}, "inconclusive"),
    ],
)
def test_a_claim_of_a_win_rate(won: int, said: dict[str, Any], expected: str) -> None:
    told = claim(metric="win_rate", difference_from="base", **said)
    found = verdict(told, share(500, won), [0.5] * 500)
    assert found["verdict"] == expected
    assert found["observed"]["mean"] == won / 500
    assert (found["observed"]["wins"], found["observed"]["losses"]) == (won, 500 - won)

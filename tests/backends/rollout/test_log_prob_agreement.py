"""A rollout says whether its server gives the log-probabilities that the checkpoint's trainer gave.
The scripted server, for which each of its 260 tokens is as likely as another, is the server here;
tests/torch/trl/test_scored_rows.py has a trained model."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.backends.conftest import Start, Started, leases
from tests.backends.rollout.test_job_rollout import CONFIG, MODULE, PLACEMENT

from agentc_backends.data.models.scored_rows import ScoredRow, ScoredRows, write_scored_rows

EVEN = -math.log(260)
SHORT = {**CONFIG, "limit": 1, "attempts": 1, "max_turns": 1}
CONTEXT = 2048


@pytest.fixture
def scripted(share: Start) -> Started:
    command = ["-m", "agentc_backends.servers.scripted.job_serve", "--port", "0"]
    command += ["--ready-file", "READY", "--max-model-len", str(CONTEXT)]
    return share("policy", command, "policy-token", model="policy", log="policy.log")


@pytest.fixture
def played(
    run_job: Any, environment: Started, tmp_path: Path
) -> Callable[..., tuple[dict[str, Any], str]]:
    """Facts and output of a rollout with this server and these rows beside its checkpoint."""

    def play(
        policy: Started, rows: tuple[ScoredRow, ...], dtype: str = "float32"
    ) -> tuple[dict[str, Any], str]:
        checkpoint = tmp_path / "checkpoint"
        checkpoint.mkdir(exist_ok=True)
        write_scored_rows(checkpoint, ScoredRows(dtype, rows))
        done = run_job(
            MODULE,
            SHORT,
            placement=PLACEMENT,
            leases=leases(policy, environment),
            inputs={"model": [checkpoint]},
        )
        assert done.code == 0, done.output
        return done.facts, done.output

    return play


def row(length: int, differing: float = 0.0) -> ScoredRow:
    """The first token has no log-probability, and the second was not trained."""
    return ScoredRow([65] * length, [None, None, *[EVEN + differing] * (length - 2)])


def test_the_same_log_probs_are_a_fact_alone(played: Any, scripted: Started) -> None:
    facts, output = played(scripted, (row(10), row(300)))
    agreement = facts["log_prob_agreement"]
    assert agreement == {"rows": 2, "tokens": 306, "mean": 0.0, "max": 0.0,
                         "trainer_dtype": "float32", "prompts": 0, "other_prompts": 0}  # fmt: skip
    assert "warnings" not in facts
    assert "warning:" not in output


def test_others_are_warned_of_before_the_first_episode(played: Any, scripted: Started) -> None:
    facts, output = played(scripted, (row(12), row(12, -0.1)))
    agreement = facts["log_prob_agreement"]
    assert (agreement["mean"], agreement["max"]) == (0.05, 0.1)
    (said,) = facts["warnings"]
    assert "differ by 0.050 on average (at most 0.100)" in said
    assert f"warning: {said}" in output
    assert facts["episodes"] == 1


def test_what_rounding_explains_is_not_warned_of(played: Any, scripted: Started) -> None:
    facts, _ = played(scripted, (row(12, 0.019),))
    assert facts["log_prob_agreement"]["mean"] == 0.019
    assert "warnings" not in facts


@pytest.mark.parametrize("where", ["trainer", "checkpoint", "server"])
def test_bfloat16_anywhere_explains_more(
    where: str, played: Any, scripted: Started, tmp_path: Path
) -> None:
    """Means up to 0.021 were measured where nothing but bfloat16 differed."""
    if where == "checkpoint":
        (tmp_path / "checkpoint").mkdir()
        (tmp_path / "checkpoint" / "config.json").write_text('{"dtype": "bfloat16"}')
    if where == "server":
        scripted.lease["identity"] = {"dtype": "bfloat16"}
    dtype = "bfloat16" if where == "trainer" else "float32"
    facts, _ = played(scripted, (row(12, 0.04),), dtype)
    assert facts["log_prob_agreement"]["mean"] == 0.04
    assert "warnings" not in facts


def test_more_than_bfloat16_explains_is_warned_of(played: Any, scripted: Started) -> None:
    facts, _ = played(scripted, (row(12, 0.06),), "bfloat16")
    assert "rounding explains up to 0.05" in facts["warnings"][0]


def test_rows_beyond_the_context_are_left_out(played: Any, scripted: Started) -> None:
    facts, _ = played(scripted, (row(CONTEXT + 1, 1.0), row(12)))
    assert facts["log_prob_agreement"]["rows"] == 1
    assert facts["log_prob_agreement"]["mean"] == 0.0


@pytest.mark.parametrize(
    ("rows", "because"),
    [
        ((), "the checkpoint has no scored rows"),
        ((row(CONTEXT + 1),), "no scored row fits into the server's context"),
        ((ScoredRow([65, 260], [None, -1.0]),), "the server scores no given tokens"),
    ],
)
def test_where_nothing_can_be_compared_the_fact_says_why(
    rows: tuple[ScoredRow, ...], because: str, played: Any, scripted: Started
) -> None:
    facts, _ = played(scripted, rows)
    assert facts["log_prob_agreement"] == {"not_compared": because}
    assert "warnings" not in facts
    assert facts["episodes"] == 1


def test_a_remote_endpoint_is_not_asked(played: Any, policy: Callable[..., Started]) -> None:
    remote = policy()
    del remote.lease["log"]
    facts, _ = played(remote, (row(12),))
    assert facts["log_prob_agreement"] == {
        "not_compared": "a remote endpoint serves what it serves"
    }

"""Claims at the end of a run and by `agentc report --claims`: table, gate and exit code."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tiny_plan import TinyPlan

from agentc.cli import main
from agentc.run.claims import render_verdicts, shut_gates


def judged(name: str, verdict: str, **changes: Any) -> dict[str, Any]:
    return {
        "name": name,
        "what": "ETO on WebShop",
        "table": "Table 2",
        "stage": "scores",
        "difference_from": None,
        "metric": "reward",
        "relation": "value",
        "value": 0.674,
        "tolerance": None,
        "n": 200,
        "seeds": None,
        "percent": True,
        "gate": False,
        "verdict": verdict,
        "because": "the two numbers are apart",
        "paper": {"mean": 0.674, "low": 0.62, "high": 0.728, "n": 200, "method": "student"},
        "band": [0.62, 0.728],
        "observed": {"mean": 0.5, "low": 0.44, "high": 0.56, "n": 200, "method": "student"},
        "difference": {"mean": -0.174, "low": -0.25, "high": -0.1},
        "detectable": 0.11,
        "needed": 450,
        "lost": 0,
        **changes,
    }


def document(*claims: dict[str, Any], scale: str | None = None) -> dict[str, Any]:
    return {"claims": list(claims), "confidence": 0.95, "power": 0.8, "scale": scale}


@pytest.fixture
def plan_with_claims(plan: TinyPlan) -> TinyPlan:
    plan.job("scores", kind="rollout")
    plan.job(
        "claims", "verdicts.py", kind="verdicts", produces="Verdicts", inputs={"of": ["scores"]},
        document=document(
            judged("main", "not reproduced", gate=True), judged("more", "reproduced")
        ),
    )  # fmt: skip
    return plan


@pytest.mark.slow
def test_a_gate_that_shuts_is_the_exit_code_of_every_run(plan_with_claims: TinyPlan) -> None:
    first = plan_with_claims.run_all()
    assert first.returncode == 6, first.stderr
    assert "2 jobs to run" in first.stdout
    for done in (first, plan_with_claims.run_all()):
        assert done.returncode == 6
        assert "67.4 [62.0, 72.8] n=200" in done.stdout
        assert "AGC720" in done.stderr
        assert "main" in done.stderr
        assert "more" not in done.stderr
    runs = plan_with_claims.store / "runs" / "tiny" / "history.jsonl"
    assert [json.loads(line)["exit"] for line in runs.read_text().splitlines()] == [6, 6]


@pytest.mark.slow
def test_claims_command_shows_the_last_run(
    plan_with_claims: TinyPlan, capsys: pytest.CaptureFixture[str]
) -> None:
    store = str(plan_with_claims.store)
    assert main(["report", "--claims", "--store", store]) == 5
    assert "nothing was run" in capsys.readouterr().err
    plan_with_claims.run_all()
    assert main(["report", "--claims", "--store", store]) == 6
    shown = capsys.readouterr()
    assert "ETO on WebShop (Table 2)" in shown.out
    assert "AGC720" in shown.err
    assert main(["report", "--claims", "--store", store, "--json"]) == 6
    told = json.loads(capsys.readouterr().out)
    assert [claim["name"] for claim in told["claims"]] == ["main", "more"]
    shutil.rmtree(plan_with_claims.store / "objects" / "verdicts")
    assert main(["report", "--claims", "--store", store]) == 5
    assert "no verdicts yet" in capsys.readouterr().err


def test_only_gated_claims_that_are_not_reproduced_shut() -> None:
    claims = [
        judged("a", "not reproduced"),
        judged("b", "inconclusive", gate=True),
        judged("c", "not judged", gate=True),
        judged("d", "not reproduced", gate=True),
    ]
    assert shut_gates(document(*claims)) == ["d"]


def test_the_table_says_what_the_data_could_tell() -> None:
    because = "the difference may be chance; a difference of 11.0 is noticed in 80% of runs"
    noise = judged("main", "inconclusive", because=because)
    shown = render_verdicts(document(noise), colour=False)
    assert f"ETO on WebShop (Table 2): {because}" in " ".join(shown.split())
    assert "\x1b" not in shown
    assert all(len(line) <= 100 for line in shown.splitlines())
    assert "\x1b[33minconclusive" in render_verdicts(document(noise), colour=True)


@pytest.mark.parametrize(
    ("verdict", "better", "shown"),
    [
        ("reproduced", 0, "\x1b[2mreproduced, nothing moved"),
        ("inconclusive", 0, "\x1b[2minconclusive, nothing moved"),
        ("not reproduced", 0, "\x1b[31mnot reproduced\x1b"),
        ("reproduced", 2, "\x1b[32mreproduced\x1b"),
    ],
)
def test_a_verdict_on_a_comparison_in_which_nothing_moved(
    verdict: str, better: int, shown: str
) -> None:
    """It is shown as that, in no colour of a finding."""
    observed = {"mean": 0.0, "low": 0.0, "high": 0.0, "n": 200, "better": better, "worse": 0}
    one = judged("gain", verdict, relation="above", value=-0.05, paper=None, observed=observed)
    assert shown in render_verdicts(document(one), colour=True)


def test_a_claim_without_scores_and_a_reduced_scale() -> None:
    none = judged(
        "main", "not judged", because="different tasks", paper=None, observed=None,
        difference=None, band=None, detectable=None, needed=None, lost=3,
    )  # fmt: skip
    shown = render_verdicts(document(none, scale="smoke"), colour=False)
    assert "not judged at scale smoke" in shown
    assert "67.4 n=200" in shown
    assert "different tasks" in shown


def test_claims_of_a_spec(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("agentc: 1\nname: bad\nstagess: {}\n")
    assert main(["report", "--claims", str(bad), "--store", str(tmp_path / "store")]) == 1
    assert "stagess" in capsys.readouterr().err
    spec = tmp_path / "none.yaml"
    spec.write_text(
        "agentc: 1\nname: none\nenvironments:\n  craft: {backend: textcraft}\n"
        "prompts:\n  react: {instruction: Act.}\nstages:\n  expert: {kind: expert, split: train}\n"
    )
    assert main(["report", "--claims", str(spec), "--store", str(tmp_path / "store")]) == 5
    assert "has no claims" in capsys.readouterr().err

"""The job program: reads evaluations, writes claims.json that its contract accepts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentc.runtime.contracts.artifacts import ContractError, check_artifact

MODULE = "agentc_backends.results.verdicts.job_verdicts"


def claim(name: str, stage: str, **changes: Any) -> dict[str, Any]:
    return {
        "name": name,
        "what": "success",
        "table": "Table 1",
        "stage": stage,
        "difference_from": None,
        "metric": "success",
        "relation": "value",
        "value": 0.5,
        "tolerance": None,
        "n": 100,
        "seeds": None,
        "bounds": [0.0, 1.0],
        "percent": True,
        "gate": False,
        **changes,
    }


@pytest.fixture
def evaluated(tmp_path: Path) -> Callable[[str, int], Path]:
    def write(name: str, good: int) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        tasks = {
            str(n): {"reward": float(n < good), "success": float(n < good), "attempts": 1}
            for n in range(80)
        }
        (folder / "metrics.json").write_text(json.dumps({"tasks": tasks}))
        return folder

    return write


def test_claims_are_judged_and_counted(
    run_job: Callable[..., Any], evaluated: Callable[[str, int], Path]
) -> None:
    gain = claim("gain", "after", difference_from="before", relation="above", value=0.0,
                 n=None, bounds=[-1.0, 1.0])  # fmt: skip
    config = {
        "claims": [claim("level", "before"), claim("far", "after", value=0.05), gain],
        "stages": ["before", "after"],
        "scale": None,
        "confidence": 0.95,
        "power": 0.8,
    }
    run = run_job(MODULE, config, inputs={"of": [evaluated("before", 36), evaluated("after", 60)]})
    assert run.code == 0, run.output
    document = json.loads((run.data / "claims.json").read_text())
    verdicts = {one["name"]: one["verdict"] for one in document["claims"]}
    assert verdicts == {"level": "inconclusive", "far": "not reproduced", "gain": "supported"}
    assert run.facts == {"inconclusive": 1, "not_reproduced": 1, "supported": 1}
    assert document["scale"] is None
    check_artifact("Verdicts", run.data, {}, {}, run.facts)


def test_contract_of_verdicts(tmp_path: Path) -> None:
    one = {"name": "a", "stage": "b", "because": "c", "verdict": "reproduced", "observed": None}
    path = tmp_path / "claims.json"
    path.write_text(json.dumps({"claims": [one]}))
    check_artifact("Verdicts", tmp_path, {}, {}, {})
    spoilt = {**one, "verdict": "sure", "paper": {"mean": 2.0, "low": 0.0, "high": 1.0}}
    path.write_text(json.dumps({"claims": [one, {**spoilt, "because": None}]}))
    with pytest.raises(ContractError) as caught:
        check_artifact("Verdicts", tmp_path, {}, {}, {})
    found = str(caught.value)
    assert "row 2, field verdict: 'sure' is none of reproduced" in found
    assert "row 2, field because: expected text" in found
    assert "row 2, field paper.mean: 2 lies outside its interval [0, 1]" in found


def revised(folder: Path, lengths: dict[str, list[int | None]]) -> Path:
    """Rows of a revise stage: where no action was flagged, and good rows, say nothing."""
    folder.mkdir()
    rows = [
        {"id": f"{task}/{number}", "task_id": task, "flagged": length}
        for task, found in lengths.items()
        for number, length in enumerate(found)
    ]
    rows.append({"id": "good", "task_id": "good", "part": "good"})
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_revision_length_is_judged_on_the_rows_of_a_revision(
    run_job: Callable[..., Any], tmp_path: Path
) -> None:
    """Its tasks are those that have revisions, so that two rounds have some in common."""
    first = revised(tmp_path / "first", {str(n): [6, 8, None] for n in range(30)})
    second = revised(tmp_path / "second", {str(n): [3] for n in range(10, 40)})
    level = claim("level", "first", metric="revision_length", value=7.0, bounds=[1.0, 21.0],
                  percent=False, tolerance=0.5)  # fmt: skip
    falls = claim("falls", "second", metric="revision_length", difference_from="first",
                  relation="below", value=0.0, n=None, bounds=[-20.0, 20.0])  # fmt: skip
    config = {
        "claims": [level, falls],
        "stages": ["first", "second"],
        "scale": None,
        "confidence": 0.95,
        "power": 0.8,
    }
    run = run_job(MODULE, config, inputs={"of": [first, second]})
    assert run.code == 0, run.output
    judged = {
        one["name"]: one for one in json.loads((run.data / "claims.json").read_text())["claims"]
    }
    assert judged["level"]["observed"]["mean"] == 7.0
    assert judged["falls"]["observed"]["mean"] == -4.0
    assert (judged["falls"]["observed"]["n"], judged["falls"]["lost"]) == (20, 20)
    assert judged["falls"]["verdict"] == "supported"


def test_two_metrics_make_one_difference(run_job: Callable[..., Any], tmp_path: Path) -> None:
    """The best of ten against the plain policy, task by task."""
    folders = []
    for name, scores in (
        ("sampled", {"best_of(10)": 0.9, "reward": 0.2}),
        ("sft", {"reward": 0.4}),
    ):
        folder = tmp_path / name
        folder.mkdir()
        tasks = {str(n): {**scores, "attempts": 10} for n in range(60)}
        (folder / "metrics.json").write_text(json.dumps({"tasks": tasks}))
        folders.append(folder)
    best = claim("best", "sampled", metric="best_of(10)", difference_from="sft", relation="above",
                 difference_metric="reward", value=0.0, n=None, bounds=[-1.0, 1.0])  # fmt: skip
    config = {
        "claims": [best],
        "stages": ["sampled", "sft"],
        "scale": None,
        "confidence": 0.95,
        "power": 0.8,
    }
    run = run_job(MODULE, config, inputs={"of": folders})
    assert run.code == 0, run.output
    [judged] = json.loads((run.data / "claims.json").read_text())["claims"]
    assert judged["observed"]["mean"] == pytest.approx(0.5)
    assert judged["verdict"] == "supported"
    assert judged["difference_metric"] == "reward"

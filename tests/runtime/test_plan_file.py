"""PlanFile: one job read out of a large plan is the same as when the whole plan is decoded."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from tiny_plan import TinyPlan

from agentc.runtime.store.plan_file import PlanError, PlanFile


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> TinyPlan:
    """Ten thousand jobs, some with names that occur elsewhere."""
    plan = TinyPlan(tmp_path_factory.mktemp("large"))
    for number in range(10_000):
        plan.job(f"stage.{number}", note=f'      "id": "stage.{number + 1}",', rows=number)
    plan.job("naïve «name»")
    plan.session("stage.7 server", "stage.7", "stage.8")
    plan.write()
    return plan


@pytest.mark.parametrize("name", ["stage.0", "stage.1", "stage.77", "stage.9999", "naïve «name»"])
def test_job_of_a_large_plan(large: TinyPlan, name: str) -> None:
    expected = next(job for job in large.jobs if job["id"] == name)
    assert PlanFile(large.path).job(name) == expected


def test_session_and_lock_of_a_large_plan(large: TinyPlan) -> None:
    file = PlanFile(large.path)
    session = file.session("stage.7 server")
    assert [job["id"] for job in file.session_jobs(session)] == ["stage.7", "stage.8"]
    digest, text = file.lock("empty")
    assert digest == large.document()["software"]["empty"]["lock"]
    assert text.startswith("# a stack")


def test_unknown_names(large: TinyPlan) -> None:
    with pytest.raises(PlanError, match="no job named 'nobody'"):
        PlanFile(large.path).job("nobody")
    with pytest.raises(PlanError, match=r"no session named 'stage\.7'"):
        PlanFile(large.path).session("stage.7")


def test_reading_one_job_does_not_decode_the_plan(large: TinyPlan) -> None:
    def seconds(read: object) -> float:
        began = time.process_time()
        read()  # type: ignore[operator]
        return time.process_time() - began

    whole = min(seconds(lambda: json.loads(large.path.read_text())) for _ in range(3))
    one = min(seconds(lambda: PlanFile(large.path).job("stage.5000")) for _ in range(3))
    assert one < whole / 3


def test_plan_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="cannot read the plan"):
        PlanFile(tmp_path / "plan.json")

"""Jobs that stop before their time limit: what programs are told, what the wrapper makes of it."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from tiny_plan import TinyPlan

from agentc.runtime.machine.allocation import MARGIN_S, NotGrantedError, stop_by

SAID = "it stopped before its time limit, at row {} of 20, with its work saved"


def soon(seconds: float) -> str:
    return str(time.time() + seconds)


def test_limit_is_the_earlier_one_less_a_margin(tmp_path: Path) -> None:
    now = time.time()
    slurm = {"SLURM_JOB_ID": "7", "SLURM_JOB_END_TIME": str(int(now) + 600)}
    assert stop_by({}) is None
    assert stop_by(slurm) == pytest.approx(now + 600 - MARGIN_S, abs=2)
    hour = {**slurm, "SLURM_JOB_END_TIME": str(int(now) + 3600)}
    assert stop_by(hour) == pytest.approx(now + 3600 - 60, abs=14), "a busy node takes longer"
    assert stop_by({"AGENTC_STOP_BY": str(now + 5)}) == pytest.approx(now + 5)
    assert stop_by({**slurm, "AGENTC_STOP_BY": str(now + 5)}) == pytest.approx(now + 5)
    assert stop_by({**slurm, "AGENTC_STOP_BY": str(now + 9e9)}) == stop_by(slurm)
    with pytest.raises(NotGrantedError, match="AGENTC_STOP_BY=noon is no time"):
        stop_by({"AGENTC_STOP_BY": "noon"})


@pytest.mark.parametrize("status", [75, 0, 1])
def test_job_that_stops_in_time_is_neither_published_nor_tried_again(
    plan: TinyPlan, status: int
) -> None:
    """Whatever its status: a launcher of several processes has one of its own."""
    plan.job("collect", rows=20, heed=60, stop_with=status)
    done = plan.run("collect", AGENTC_STOP_BY=soon(30))
    assert done.returncode == 75
    assert not plan.published("collect")
    assert f"agentc: job collect is not done: {SAID.format(0)}\nRun again" in done.stderr
    told = plan.status("collect")
    assert (told["state"], told["out_of_time"], told["attempts"]) == ("failed", True, 1)
    assert told["message"].splitlines()[0] == SAID.format(0)
    assert plan.run("collect").returncode == 0
    (earlier,) = plan.manifest("collect")["earlier_attempts"]
    assert earlier["because"] == SAID.format(0)


def test_several_cuts_end_with_the_bytes_of_an_uncut_job(plan: TinyPlan) -> None:
    """The limit is no setting: it enters neither key nor result."""
    plan.job("whole", rows=20, stop_after=6)
    plan.job("cut", rows=20, stop_after=6, say="cut")
    assert plan.run("whole").returncode == 0
    codes = [plan.run("cut", AGENTC_STOP_BY=soon(600)).returncode for _ in range(4)]
    assert codes == [75, 75, 75, 0]
    earlier = plan.manifest("cut")["earlier_attempts"]
    assert [one["because"] for one in earlier] == [SAID.format(row) for row in (6, 12, 18)]
    texts = {(plan.data(name) / "trajectories.jsonl").read_bytes() for name in ("whole", "cut")}
    assert len(texts) == 1


def test_program_without_a_limit_is_told_none(plan: TinyPlan) -> None:
    plan.job("collect", rows=1, exit=1, heed=60)
    plan.run("collect")
    assert "stop_by" not in json.loads((plan.staging("collect") / "job.json").read_text())


def test_75_without_word_of_the_limit_is_infrastructure(plan: TinyPlan) -> None:
    """Where a limit is known, too: a server that was lost comes back at once."""
    plan.job("collect", rows=1, fail_times=1)
    assert plan.run("collect", AGENTC_STOP_BY=soon(600)).returncode == 0
    (earlier,) = plan.manifest("collect")["earlier_attempts"]
    assert earlier["because"] == "the program asked for another attempt (exit 75)"


def test_session_is_out_of_time_where_its_jobs_are(plan: TinyPlan) -> None:
    """One that waits for the result of another is as well; what is done is kept."""
    plan.job("model", "checkpoint.py", kind="sft", produces="Checkpoint")
    assert plan.run("model").returncode == 0
    common = {"inputs": {"model": ["model"]}, "leases": [plan.lease()]}
    plan.job("quick", rows=1, say="quick", **common)
    plan.job("slow", rows=20, heed=3000, say="slow", **common)
    behind = {"inputs": {"model": ["model"], "data": ["slow"]}, "leases": [plan.lease()]}
    plan.job("behind", rows=1, say="behind", **behind)
    plan.session("all", "quick", "slow", "behind")
    done = plan.run(session="all", AGENTC_STOP_BY=soon(1000), AGENTC_VISIBLE_S="0")
    assert done.returncode == 75, done.stderr
    assert plan.published("quick")
    assert plan.status("slow")["out_of_time"]
    assert plan.status("behind")["out_of_time"]
    status = json.loads((plan.store / "staging" / plan.object("all") / "status.json").read_text())
    assert status["message"] == "2 of its jobs stopped before the time limit"
    assert plan.run(session="all").returncode == 0
    assert plan.published("behind")

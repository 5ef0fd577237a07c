"""Jobs that the cluster cuts off are submitted again within a bound, with reasons. Real wrappers
and programs; a stand-in speaks Snakemake's words (tests/slurm has the real ones)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tiny_plan import TinyPlan

from agentc.exit_codes import EXIT_FAILED
from agentc.placement.profile import Profile
from agentc.plan.work import find_work, read_plan
from agentc.run import drive, slurm_endings
from agentc.run.observe import JobSnapshot, Observer, ServerWatch
from agentc.run.snakemake_process import DriverOptions
from agentc.runtime.store.layout import StoreLayout

pytestmark = pytest.mark.slow

STAND_IN = Path(__file__).with_name("slurm_stand_in.py")
SLURM = Profile(name="ours", file=Path("config.yaml"), settings={"executor": "slurm"})
STOPPED = "it stopped before its time limit, at row {} of 20, with its work saved"


@dataclass
class Lines:
    """A view that keeps what is said."""

    said: list[str] = field(default_factory=list)

    def show(self, jobs: Sequence[JobSnapshot]) -> None:
        pass

    def print_line(self, text: str, *, passing: bool = False) -> None:
        self.said.append(text)


@dataclass
class Driven:
    code: int
    said: list[str]
    submitted: list[str]
    causes: list[str]


def run(plan: TinyPlan, monkeypatch: pytest.MonkeyPatch) -> Driven:
    """Drive the plan on a cluster that knows time limits."""
    submissions = plan.folder / "submissions"
    submissions.unlink(missing_ok=True)
    argv = [sys.executable, str(STAND_IN), str(plan.write()), str(plan.store)]
    monkeypatch.setattr(drive, "driver_argv", lambda *_: [*argv, str(submissions)])
    layout = StoreLayout(plan.store)
    work = find_work(read_plan(plan.path), layout)
    view = Lines()
    code = drive.drive(
        work,
        plan.folder,
        DriverOptions(profile=SLURM),
        Observer(layout, work.missing, since=0.0),
        ServerWatch(layout, work.document, since=0.0),
        view,
    )
    log = plan.folder / drive.DRIVER_LOG
    return Driven(
        code, view.said, submissions.read_text().split(), slurm_endings.describe(log, work)
    )


def test_job_is_submitted_again_until_it_is_done(
    plan: TinyPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan.job("collect", rows=20, stop_after=3)
    done = run(plan, monkeypatch)
    assert done.code == 0, done
    assert done.submitted == ["collect"] * 7, "three rows each"
    assert len(done.said) == 6
    assert done.said[0].startswith(
        "SLURM's job 101 (collect): it stopped before its time limit, at row 3 of"
    )
    assert done.said[0].endswith(
        "submitting it again, to continue where it was cut off (2 of at most 10)"
    )
    attempts = plan.manifest("collect")["earlier_attempts"]
    assert [attempt["slurm"] for attempt in attempts] == [
        str(101 + number) for number in range(len(attempts))
    ]
    assert done.causes == []


@pytest.mark.parametrize(
    ("retries", "words"),
    [
        (0, "it is not submitted again, for `placement:` says `retries: 0`"),
        (1, "it was submitted again once, and no more are allowed"),
    ],
)
def test_bound_of_the_spec_names_cause_and_remedy(
    plan: TinyPlan, monkeypatch: pytest.MonkeyPatch, retries: int, words: str
) -> None:
    job = plan.job("collect", rows=20, stop_after=3)
    key = job["key"]
    job["asked"] = {"retries": {"value": retries, "file": "tiny.yaml", "line": 3}}
    done = run(plan, monkeypatch)
    assert done.code == EXIT_FAILED
    assert len(done.submitted) == retries + 1
    assert words in done.said[-1]
    assert "another `agentc run` continues where it was cut off" in done.said[-1].replace("A", "a")
    (cause,) = done.causes
    assert "raise `placement: {minutes: ...}`" in cause
    assert plan.status("collect")["out_of_time"]
    assert plan.document()["jobs"][0]["key"] == key


def test_each_job_has_a_bound_of_its_own(plan: TinyPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    plan.job("first", rows=20, stop_after=3, say="first")
    last = plan.job("last", rows=20, stop_after=3, say="last")
    last["asked"] = {"retries": {"value": 1, "file": "tiny.yaml", "line": 3}}
    done = run(plan, monkeypatch)
    assert done.code == EXIT_FAILED
    assert plan.published("first")
    assert done.submitted.count("first") == 7
    assert done.submitted.count("last") == 2


def test_job_that_gets_no_further_is_given_up(
    plan: TinyPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan.job("collect", rows=20, heed=1000)
    done = run(plan, monkeypatch)
    assert done.code == EXIT_FAILED
    assert done.submitted == ["collect"] * 2
    told = f"SLURM's job 102 (collect): {STOPPED.format(0)}; it got no further than the last time"
    assert done.said[-1].startswith(told)


def test_program_that_fails_is_not_submitted_again(
    plan: TinyPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even where an earlier submission of it had stopped in time."""
    job = plan.job("collect", rows=20, heed=1000)
    run(plan, monkeypatch)
    job["config"].update(exit=3, heed=0)
    done = run(plan, monkeypatch)
    assert (done.code, done.submitted, done.said) == (EXIT_FAILED, ["collect"], [])


def test_job_that_begins_while_the_controller_is_away_is_submitted_again(
    plan: TinyPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For SLURM it has failed, and no wrapper of it ever ran."""
    plan.job("collect", rows=3)
    plan.folder.mkdir(exist_ok=True)
    (plan.folder / "submissions.away").touch()
    done = run(plan, monkeypatch)
    assert done.code == 0, done
    assert done.submitted == ["collect"] * 2
    (said,) = done.said
    assert said.startswith("SLURM's job 101 (collect): it could not begin (srun: error: Unable to")
    assert "submitting it again" in said
    assert plan.manifest("collect")["attempts"] == 1


def test_job_that_fails_after_its_result_was_published_stops_nothing(
    plan: TinyPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Snakemake around its wrapper was killed, or ran out of memory."""
    plan.job("collect", rows=3)["asked"] = {"retries": {"value": 0, "file": "t.yaml", "line": 3}}
    plan.job("last", rows=1, say="last")
    (plan.folder / "submissions.late").touch()
    done = run(plan, monkeypatch)
    assert done.code == 0, done
    assert done.submitted == ["collect", "last"]
    (said,) = done.said
    assert said.startswith("SLURM ended job 101 (collect): FAILED; what it was to make is in the")

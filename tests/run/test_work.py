"""What has to run: only what is missing on the way to what is wanted."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.support.pace import least
from tiny_plan import TinyPlan

from agentc.plan.work import UnknownStageError, Work, find_work
from agentc.runtime.store.layout import StoreLayout


@pytest.fixture
def chain(plan: TinyPlan) -> TinyPlan:
    plan.job("a")
    plan.job("b", inputs={"x": ["a"]})
    plan.job("c", inputs={"x": ["b"]})
    plan.job("side")
    return plan


def publish(plan: TinyPlan, *names: str) -> None:
    for name in names:
        folder = plan.store / "objects" / plan.object(name)
        folder.mkdir(parents=True)
        (folder / "artifact.json").write_text("{}")


def work_of(plan: TinyPlan, until: str | None = None) -> Work:
    return find_work(plan.document(), StoreLayout(plan.store), until)


def ids(jobs: object) -> list[str]:
    return [job["id"] for job in jobs]  # type: ignore[attr-defined]


def test_everything_is_missing_at_first(chain: TinyPlan) -> None:
    assert ids(work_of(chain).missing) == ["a", "b", "c", "side"]


def test_job_behind_an_existing_result_is_not_needed_again(chain: TinyPlan) -> None:
    """`a` was deleted, but `b` is there: nothing asks for `a`."""
    publish(chain, "b")
    work = work_of(chain)
    assert ids(work.missing) == ["c", "side"]
    assert ids(work.present) == ["b"]


def test_until_a_stage(chain: TinyPlan) -> None:
    work = work_of(chain, "b")
    assert ids(work.missing) == ["a", "b"]
    layout = StoreLayout(chain.store)
    assert work.manifests() == (layout.manifest(chain.object("b")),)
    with pytest.raises(UnknownStageError):
        work_of(chain, "z")


def test_members_are_made_by_their_session(chain: TinyPlan) -> None:
    chain.session("both", "c", "side")
    layout = StoreLayout(chain.store)
    assert work_of(chain).manifests() == (layout.manifest(chain.object("both")),)


def test_members_of_a_session_come_along(chain: TinyPlan) -> None:
    """Whoever asks for one member gets the others too: the wrapper runs the whole session."""
    chain.session("both", "c", "side")
    assert ids(work_of(chain, "side").missing) == ["a", "b", "c", "side"]
    publish(chain, "b", "c")
    assert ids(work_of(chain, "side").missing) == ["side"]


def test_two_jobs_with_one_key_run_once(plan: TinyPlan) -> None:
    plan.job("same")
    plan.jobs.append({**plan.jobs[0], "id": "twin", "stage": "twin"})
    assert ids(work_of(plan).missing) == ["same"]


def test_ten_thousand_jobs_are_sorted_out_quickly(tmp_path: Path) -> None:
    plan = TinyPlan(tmp_path)
    plan.job("j0")
    for number in range(1, 10_000):
        entry = dict(plan.jobs[0], id=f"j{number}", stage=f"j{number}", key=f"{number:032x}")
        entry["inputs"] = {"x": [f"rollout/{plan.jobs[-1]['key']}"]}
        plan.jobs.append(entry)
    document = plan.document() | {"targets": [f"rollout/{plan.jobs[-1]['key']}"]}

    def seconds() -> float:
        began = time.process_time()
        assert len(find_work(document, StoreLayout(plan.store)).missing) == 10_000
        return time.process_time() - began

    assert least(seconds, 1.0) < 1.0

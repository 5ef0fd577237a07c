"""What a run would do, given what the store has."""

from __future__ import annotations

from pathlib import Path

import pytest
from toy_plan import job, plan

from agentc.plan.job import Plan
from agentc.plan.render import plan_document
from agentc.plan.work import Work, find_work
from agentc.runtime.store.layout import StoreLayout

MADE = plan(
    job("base", "model"),
    job("sft", "sft", model=["base"]),
    job("scores", "evaluate", served="sft"),
    job("explore", "rollout", served="sft"),
    job("report", "report", a=["scores"], b=["explore"], c=["sft"]),
)


class Store:
    """A store in a folder, with empty objects."""

    def __init__(self, root: Path) -> None:
        self.layout = StoreLayout(root)

    def work(self, made: Plan, *present: str, until: str | None = None) -> Work:
        for name in present:
            manifest = self.layout.manifest(made.by_id()[name].object)
            manifest.parent.mkdir(parents=True, exist_ok=True)
            manifest.touch()
        return find_work(plan_document(made), self.layout, until)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def test_an_empty_store_runs_everything(store: Store) -> None:
    work = store.work(MADE)
    assert set(work.states.values()) == {"run"}
    assert (work.server_starts, work.saved_starts) == (1, 1)


def test_what_only_finished_work_needed_is_not_made_again(store: Store) -> None:
    assert store.work(MADE, "sft").states == {
        "base": "unneeded",
        "sft": "cached",
        "scores": "run",
        "explore": "run",
        "report": "run",
    }


def test_a_finished_target_needs_nothing(store: Store) -> None:
    assert set(store.work(MADE, "report").states.values()) == {"cached", "unneeded"}


def test_until_a_stage_the_rest_has_no_state(store: Store) -> None:
    assert store.work(MADE, until="sft").states == {"base": "run", "sft": "run"}


def test_a_session_with_one_member_left_saves_nothing(store: Store) -> None:
    work = store.work(MADE, "sft", "scores")
    assert (work.server_starts, work.saved_starts) == (1, 0)


def test_a_session_that_runs_makes_all_its_missing_members(store: Store) -> None:
    made = plan(
        job("base", "model"),
        job("scores", "evaluate", served="base"),
        job("explore", "rollout", served="base"),
        job("tuned", "dpo", data=["explore"]),
        job("table", "compare", of=["scores"]),
    )
    found = store.work(made, "tuned").states
    assert found["tuned"] == "cached"
    assert found["explore"] == "run", "scores runs, and explore is in its session"


def test_equal_work_counts_once(store: Store) -> None:
    """What a run calls missing is what the states call to run, whatever is there."""
    made = plan(
        job("base", "model"),
        job("a", "sft", model=["base"], settings={"lr": 1}),
        job("b", "sft", model=["base"], settings={"lr": 1}),
        job("c", "sft", model=["base"], settings={"lr": 2}),
    )
    for present in ((), ("base",), ("a",), ("a", "c")):
        work = Store(store.layout.root / "-".join(present)).work(made, *present)
        assert work.twins == {"b": "a"}
        assert work.states["a"] == work.states["b"]
        assert work.count("run") == len(work.missing)
        assert work.count("cached") == len(present)

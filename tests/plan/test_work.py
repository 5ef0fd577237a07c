"""What a run would do, given what the store has."""

from __future__ import annotations

from toy_plan import job, plan

from agentc.plan.work import plan_work

MADE = plan(
    job("base", "model"),
    job("sft", "sft", model=["base"]),
    job("scores", "evaluate", served="sft"),
    job("explore", "rollout", served="sft"),
    job("report", "report", a=["scores"], b=["explore"], c=["sft"]),
)


def states(*present: str) -> dict[str, str]:
    objects = {MADE.by_id()[name].object for name in present}
    return dict(plan_work(MADE, objects.__contains__).states)


def test_an_empty_store_runs_everything() -> None:
    assert set(states().values()) == {"run"}
    work = plan_work(MADE, lambda name: False)
    assert (work.server_starts, work.saved_starts) == (1, 1)


def test_what_only_finished_work_needed_is_not_made_again() -> None:
    assert states("sft") == {
        "base": "unneeded",
        "sft": "cached",
        "scores": "run",
        "explore": "run",
        "report": "run",
    }


def test_a_finished_target_needs_nothing() -> None:
    assert set(states("report").values()) == {"cached", "unneeded"}


def test_a_session_with_one_member_left_saves_nothing() -> None:
    objects = {MADE.by_id()[name].object for name in ("sft", "scores")}
    work = plan_work(MADE, objects.__contains__)
    assert (work.server_starts, work.saved_starts) == (1, 0)


def test_a_session_that_runs_makes_all_its_missing_members() -> None:
    made = plan(
        job("base", "model"),
        job("scores", "evaluate", served="base"),
        job("explore", "rollout", served="base"),
        job("tuned", "dpo", data=["explore"]),
        job("table", "compare", of=["scores"]),
    )
    present = {made.by_id()["tuned"].object}
    found = plan_work(made, present.__contains__).states
    assert found["tuned"] == "cached"
    assert found["explore"] == "run", "scores runs, and explore is in its session"

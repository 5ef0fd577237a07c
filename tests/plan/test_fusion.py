"""Sessions never make a circle, whatever the graph, and save a start for each member but one."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from toy_plan import job, plan

from agentc.plan.job import Job
from agentc.plan.render import plan_document
from agentc.plan.verify import verify_plan
from agentc.plan.work import find_work
from agentc.runtime.store.layout import StoreLayout


@st.composite
def graphs(draw: st.DrawFn) -> list[Job]:
    """Random graphs in which jobs serve earlier jobs' checkpoints and read any earlier job."""
    jobs: list[Job] = [job("j0", "model")]
    for n in range(1, draw(st.integers(1, 14))):
        earlier = [one.id for one in jobs]
        read = draw(st.lists(st.sampled_from(earlier), max_size=3, unique=True))
        served = draw(st.none() | st.sampled_from(earlier[: max(1, len(earlier) // 2)]))
        server = {"context": draw(st.sampled_from([256, 512]))}
        jobs.append(job(f"j{n}", "rollout", served=served, server=server, data=read))
    return jobs


@given(graphs())
def test_sessions_are_sound(jobs: list[Job]) -> None:
    assert verify_plan(plan(*jobs)) == []


@given(graphs())
def test_members_share_one_server(jobs: list[Job]) -> None:
    made = plan(*jobs)
    by_id = made.by_id()
    for session in made.sessions:
        members = [by_id[name] for name in session.members]
        assert len({one.inputs["model"] for one in members}) == 1
        assert len({str(one.leases[0].draft.identity) for one in members}) == 1


@given(graphs())
def test_starts_are_saved(jobs: list[Job]) -> None:
    fused, apart = plan(*jobs), plan(*jobs, fuse=False)
    nothing = StoreLayout("/nonexistent")
    here, there = (find_work(plan_document(made), nothing) for made in (fused, apart))
    assert here.server_starts + here.saved_starts == there.server_starts
    spared = sum(len(session.members) - 1 for session in fused.sessions)
    assert here.saved_starts == spared


def test_jobs_of_different_depth_stay_apart() -> None:
    made = plan(
        job("base", "model"),
        job("first", "rollout", served="base"),
        job("pairs", "pair", rollouts=["first"]),
        job("later", "rollout", served="base", data=["pairs"]),
    )
    assert made.sessions == ()


def test_equal_work_is_one_member() -> None:
    made = plan(
        job("base", "model"),
        job("a", "rollout", served="base", settings={"split": "test"}),
        job("b", "rollout", served="base", settings={"split": "test"}),
        job("c", "rollout", served="base", settings={"split": "train"}),
    )
    assert [session.members for session in made.sessions] == [("a", "c")]


def test_a_server_that_is_started_otherwise_is_another_one() -> None:
    """With the same results: two programs would run in one session, each on GPUs of its own."""
    base, *acting = (
        job("base", "model"),
        *(job(name, "rollout", served="base") for name in ("a", "b", "c", "d")),
    )
    first, second, *rest = acting
    changed = replace(second.leases[0].draft, devices=2)
    second = replace(second, leases=(replace(second.leases[0], draft=changed),))
    made = plan(base, first, second, *rest)
    assert [session.members for session in made.sessions] == [("a", "c", "d")]


def test_a_model_of_two_names_is_served_once() -> None:
    ranked = job("rank", "rank", reference=["base"])
    lease = job("act", "rollout", served="base").leases[0]
    own = replace(lease, draft=replace(lease.draft, input="reference"))
    made = plan(
        job("base", "model"),
        job("act", "rollout", served="base"),
        replace(ranked, leases=(own,)),
    )
    assert [session.members for session in made.sessions] == [("act", "rank")]


def test_a_session_has_the_key_of_its_members() -> None:
    jobs = [job("base", "model"), *(job(n, "rollout", served="base") for n in "abc")]
    whole, part = plan(*jobs), plan(*jobs[:-1])
    assert whole.sessions[0].key != part.sessions[0].key
    assert plan(jobs[0], *reversed(jobs[1:])).sessions[0].key == whole.sessions[0].key


def test_a_job_that_reads_another_on_the_same_server_joins_it() -> None:
    made = plan(
        job("base", "model"),
        job("search", "search", served="base"),
        job("revise", "revise", served="base", trees=["search"]),
        job("tune", "sft", data=["revise"]),
        job("again", "search", served="tune"),
    )
    assert [session.members for session in made.sessions] == [("search", "revise")]
    assert verify_plan(made) == []


def test_what_lies_between_keeps_them_apart() -> None:
    made = plan(
        job("base", "model"),
        job("search", "search", served="base"),
        job("mix", "mix", agent=["search"]),
        job("revise", "revise", served="base", trees=["search"], data=["mix"]),
    )
    assert made.sessions == ()


def test_crossed_reading_makes_no_circle() -> None:
    made = plan(
        job("p", "model"),
        job("q", "model"),
        job("sp", "search", served="p"),
        job("sq", "search", served="q"),
        job("rp", "revise", served="p", trees=["sq", "sp"]),
        job("rq", "revise", served="q", trees=["sp", "sq"]),
    )
    assert verify_plan(made) == []
    assert made.sessions == ()

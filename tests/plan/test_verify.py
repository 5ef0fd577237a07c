"""The verifier of the plan level sees what must not be."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.support.drafted import changed
from toy_plan import job, plan

from agentc.plan.job import Job, Plan, Session
from agentc.plan.verify import verify_plan

SOUND = plan(
    job("base", "model"),
    job("a", "rollout", served="base"),
    job("b", "rollout", served="base"),
    job("c", "pair", rollouts=["a", "b"]),
)


def altered(name: str, **changes: object) -> Plan:
    jobs = tuple(changed(one, **changes) if one.id == name else one for one in SOUND.jobs)
    return replace(SOUND, jobs=jobs)


def test_a_sound_plan() -> None:
    assert verify_plan(SOUND) == []
    assert len(SOUND.sessions) == 1


BASE: Job = SOUND.jobs[0]


@pytest.mark.parametrize(
    ("broken", "fault"),
    [
        (replace(SOUND, jobs=tuple(reversed(SOUND.jobs))), "does not be before it"),
        (replace(SOUND, jobs=(*SOUND.jobs, BASE)), "two jobs are called base"),
        (altered("c", software="nowhere"), "unknown software stack nowhere"),
        (altered("c", key="XYZ"), "has the key 'XYZ'"),
        (altered("c", config={"a": {1, 2}}), "cannot be written down: a set"),
        (altered("a", leases=(SOUND.jobs[1].leases[0],) * 2), "two leases of one role"),
        (altered("a", inputs={"data": ("base",)}), "serves the unknown role model"),
        (altered("c", key=BASE.key), "different work under one key"),
        (replace(SOUND, targets=("nowhere",)), "target nowhere is no job"),
        (
            replace(SOUND, sessions=(Session(id="s", key="0" * 32, members=("a",)),)),
            "joins fewer than two",
        ),
        (
            replace(SOUND, sessions=(Session(id="s", key="0" * 32, members=("a", "x", "b")),)),
            "unknown member x",
        ),
        (
            replace(SOUND, sessions=(*SOUND.sessions, replace(SOUND.sessions[0], id="s"))),
            "is a member of",
        ),
        (
            replace(SOUND, sessions=(Session(id="s", key="0" * 32, members=("base", "c")),)),
            "in a circle",
        ),
    ],
)
def test_a_broken_plan(broken: Plan, fault: str) -> None:
    assert any(fault in found for found in verify_plan(broken)), verify_plan(broken)

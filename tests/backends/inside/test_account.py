"""What an environment says of itself that a job's program opens: held against the plan, and left
for the manifest of the job."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agentc.program.job import OtherEnvironmentError, admit_inside
from agentc.runtime.servers.job_leases import InsideLease, PlannedLease
from agentc_backends.environments.corridor.environment import CorridorEnvironment
from agentc_backends.environments.server.inside import InsideEnvironment

SPEC = {
    "role": "environment",
    "backend": "env.corridor",
    "port": "inside",
    "program": ["-m", "agentc_backends.environments.corridor.job_serve"],
    "settings": {"tasks": 100},
    "expect": {"name": "corridor", "options": {"tasks": 100, "max_steps": 60, "gamble": False}},
}


class NotedCorridor(CorridorEnvironment):
    def facts(self) -> dict[str, Any]:
        return {"lamp": "oil"}


def opened_by_a_job(folder: Path, expect: dict[str, Any]) -> InsideLease:
    """The wrapper's lease, when the program has looked at what it opened."""
    planned = PlannedLease({}, {**SPEC, "expect": expect})
    lease = InsideLease(planned, folder / "account.json", {"lock": "1", "python": "3.11"})
    assert "served" not in lease.manifest()
    admit_inside(lease.endpoint, asyncio.run(InsideEnvironment(NotedCorridor).meta()))
    return lease


def test_what_it_notes_is_in_the_manifest_as_of_a_server(tmp_path: Path) -> None:
    told = opened_by_a_job(tmp_path, SPEC["expect"]).manifest()  # type: ignore[arg-type]
    assert told["served"]["options"] == {"tasks": 100, "max_steps": 60, "gamble": False}
    assert told["facts"] == {"lamp": "oil"}


def test_another_one_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(OtherEnvironmentError, match=r"  options: expected .* found .*60"):
        opened_by_a_job(tmp_path, {"name": "corridor", "options": {"max_steps": 61}})
    assert not (tmp_path / "account.json").exists()

"""Servers of scope `shared`: agentc submits them itself, to SLURM and to no other queue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentc.placement import ResolvedRequest
from agentc.placement.profile import SLURM, Profile
from agentc.preflight.finding import PreflightFinding, named


def check_shared_servers(
    settled: Sequence[ResolvedRequest], profile: Profile | None
) -> Iterator[PreflightFinding]:
    """A problem where another executor than SLURM's would leave them to the submit host."""
    servers = [each for each in settled if each.rule == "server"]
    if profile is None or not profile.queued or profile.executor == SLURM or not servers:
        return
    labels = named(each.label.removeprefix("server/") for each in servers)
    yield PreflightFinding(
        check="servers",
        verdict="problem",
        message=f"{labels} has `scope: shared`, and agentc submits shared servers to SLURM only, "
        f"not by `executor: {profile.executor}`",
        fix="set `scope: job`: each job, or session of jobs, then starts the server on its node",
    )

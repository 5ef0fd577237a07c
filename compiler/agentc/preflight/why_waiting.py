"""Why SLURM does not start a job that is in its queue: what preflight finds about it, with the
setting that it comes from. `agentc run` calls this where no waiting would help."""

from __future__ import annotations

from agentc.placement import read_requests, settle_plan
from agentc.placement.profile import Profile
from agentc.plan.work import Work
from agentc.preflight.cluster import check_cluster, read_cluster
from agentc.preflight.slurm_query import ask_slurm


def why_waiting(profile: Profile, work: Work, unit: str) -> list[str]:
    """A sentence for each problem of the job that makes an object; none where SLURM does not
    answer, or preflight knows of none."""
    settled = [
        one for one in settle_plan(work.document, read_requests(profile)) if one.object == unit
    ]
    cluster, _ = read_cluster(ask_slurm()) if settled else (None, [])
    if cluster is None:
        return []
    return [
        each.message + (f"; {each.fix}" if each.fix else "")
        for each in check_cluster(settled, cluster)
        if each.verdict == "problem"
    ]

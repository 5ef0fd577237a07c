"""SLURM's queue: how many jobs of a user a cluster takes at once (limits of qualities of service,
of partitions' own, and of associations), to which a run keeps; and why a job in the queue does
not start, with the setting that it comes from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentc.placement import ResolvedRequest, read_requests, resolve_placement
from agentc.placement.profile import Profile
from agentc.plan.work import Work
from agentc.preflight.cluster import Cluster, check_cluster, read_cluster
from agentc.preflight.finding import PreflightFinding, problem, warning
from agentc.preflight.slurm_facts import Association, JobCounts, ask_slurm
from agentc.run.slurm_queue import SubmitLimit


def submit_limits(settled: Sequence[ResolvedRequest], cluster: Cluster) -> tuple[SubmitLimit, ...]:
    """Limits on the jobs in the queue that hold for some of these, the smallest first."""
    found: set[SubmitLimit] = set()
    for owner, counts, qos, account in _owners(settled, cluster):
        for count, shared in ((counts.submitted, False), (counts.all_submitted, True)):
            if count is not None:
                limit = SubmitLimit(
                    count=count, owner=owner, qos=qos, account=account, shared=shared
                )
                found.add(limit)
    return tuple(sorted(found, key=lambda limit: (limit.count, limit.owner)))


def limit_of_run(settled: Sequence[ResolvedRequest]) -> SubmitLimit | None:
    """The smallest limit on the jobs of a run, by what SLURM says now; None where it says none."""
    queued = [each for each in settled if not each.local]
    cluster = read_cluster(ask_slurm())[0] if queued else None
    limits = () if cluster is None else submit_limits(queued, cluster)
    return limits[0] if limits else None


def check_job_counts(
    settled: Sequence[ResolvedRequest], cluster: Cluster, at_once: int
) -> Iterator[PreflightFinding]:
    """What the limits mean for a run that would have `at_once` jobs in the queue."""
    wanted = min(at_once, len(settled))
    for limit in submit_limits(settled, cluster)[:1]:
        if limit.count == 0:
            yield problem(
                "limits",
                f"{limit.owner} takes no jobs (its limit on submitted jobs is 0)",
                "choose another qos or account, or ask the administrators of the cluster",
            )
        elif limit.count < wanted:
            yield warning(
                "limits",
                f"{wanted} jobs at a time, and {limit.owner} takes {limit.count}"
                f"{' of all users' if limit.shared else ''} in the queue",
                f"the run submits no more than that at a time, less what you have there already; "
                f"`jobs: {limit.count}` in the profile, or `-j {limit.count}`, says the same",
            )
    running = [
        (counts.running, owner)
        for owner, counts, _, _ in _owners(settled, cluster)
        if counts.running is not None and counts.running < wanted
    ]
    for count, owner in sorted(set(running))[:1]:
        yield warning(
            "limits",
            f"{wanted} jobs at a time, and {owner} lets {count} of them run at once",
            "the others wait in the queue",
        )


def _owners(
    settled: Sequence[ResolvedRequest], cluster: Cluster
) -> Iterator[tuple[str, JobCounts, str | None, str | None]]:
    """A limit on some of the jobs, in words: what it allows, and whose jobs count."""
    if not cluster.counts_jobs:
        return
    seen: set[tuple[str, str]] = set()
    for job in settled:
        association = _association(job, cluster)
        for name in _qualities(job, cluster, association):
            held = (cluster.qos or {}).get(name)
            if held is not None and ("qos", name) not in seen:
                seen.add(("qos", name))
                yield f"the qos `{name}`", held.counts, name, None
        if association is not None and ("account", association.account) not in seen:
            seen.add(("account", association.account))
            account = association.account
            yield f"the account `{account}`", association.counts, None, account


def _association(job: ResolvedRequest, cluster: Cluster) -> Association | None:
    """What the job is charged to, as far as that is known."""
    account = job.word("account") or cluster.default_account
    mine = [one for one in cluster.associations or () if one.account == account]
    return next((one for one in mine if one.partition in (None, job.word("partition"))), None)


def _qualities(
    job: ResolvedRequest, cluster: Cluster, association: Association | None
) -> Iterator[str]:
    """Qualities of service whose limits hold: the job's, and that of its partition."""
    own = job.word("qos") or (None if association is None else association.default_qos)
    if own is None and cluster.qos is not None and "normal" in cluster.qos:
        own = "normal"
    if own:
        yield own
    name = job.word("partition") or (cluster.default.name if cluster.default else "")
    partition = cluster.partitions.get(name)
    if partition is not None and partition.own_qos and partition.own_qos != own:
        yield partition.own_qos


def why_waiting(profile: Profile, work: Work, unit: str) -> list[str]:
    """A sentence for each problem of the job that makes an object; none where SLURM does not
    answer, or preflight knows of none."""
    settled = [
        one
        for one in resolve_placement(work.document, read_requests(profile))
        if one.object == unit
    ]
    cluster, _ = read_cluster(ask_slurm()) if settled else (None, [])
    if cluster is None:
        return []
    return [
        each.message + (f"; {each.fix}" if each.fix else "")
        for each in check_cluster(settled, cluster)
        if each.verdict == "problem"
    ]

"""What SLURM would refuse, or leave in the queue for ever, of what the jobs ask for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from agentc.diagnostics.suggest import did_you_mean
from agentc.placement import ResolvedRequest
from agentc.preflight.finding import PreflightFinding, named, problem, warning
from agentc.preflight.fitting import on_nodes, setting_place
from agentc.preflight.slurm_facts import (
    Association,
    Partition,
    Qos,
    SlurmAnswer,
    enforces_counts,
    read_associations,
    read_default_account,
    read_partitions,
    read_qos,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """SLURM's answers. `qos` and `associations` are None where no accounting answers, and so is
    `default_account`, that of jobs for which nobody names one. `counts_jobs` says whether limits on
    the number of jobs are enforced."""

    partitions: Mapping[str, Partition]
    qos: Mapping[str, Qos] | None
    associations: tuple[Association, ...] | None
    default_account: str | None = None
    counts_jobs: bool = True

    @property
    def default(self) -> Partition | None:
        """The partition of jobs that name none."""
        return next((each for each in self.partitions.values() if each.default), None)


def read_cluster(
    answers: Mapping[str, SlurmAnswer],
) -> tuple[Cluster | None, list[PreflightFinding]]:
    """The cluster, or None where SLURM does not answer; and what was not answered."""
    silent = [
        PreflightFinding(
            check="slurm",
            verdict="unknown",
            online=True,
            message=str(answer.failure),
            fix="run it by hand on the host that jobs are submitted from",
        )
        for name, answer in answers.items()
        if answer.failure is not None and name in ("partitions", "nodes")
    ]
    if silent:
        return None, silent
    quiet: list[PreflightFinding] = []
    for name in ("qos", "associations"):
        failure = answers[name].failure
        if failure is not None:
            quiet.append(
                PreflightFinding(
                    check="slurm",
                    verdict="unknown",
                    online=True,
                    message=f"accounts and qualities of service are not checked: {failure}",
                )
            )
            break
    associations = None
    if not quiet:
        # Where accounting enforces nothing, users need not be known to it.
        associations = read_associations(answers["associations"].text) or None
    return (
        Cluster(
            partitions=read_partitions(answers["partitions"].text, answers["nodes"].text),
            qos=None if quiet else read_qos(answers["qos"].text),
            associations=associations,
            default_account=read_default_account(_text(answers, "user")),
            counts_jobs=enforces_counts(_text(answers, "config")),
        ),
        quiet,
    )


def _text(answers: Mapping[str, SlurmAnswer], name: str) -> str:
    return answers[name].text if name in answers else ""


def check_cluster(settled: Sequence[ResolvedRequest], cluster: Cluster) -> list[PreflightFinding]:
    """A finding for each complaint, with the stages that it holds for; one that says so where
    there is none."""
    complaints: dict[PreflightFinding, list[str]] = {}
    for each in settled:
        for complaint in _of_job(each, cluster):
            complaints.setdefault(complaint, []).extend(str(job["stage"]) for job in each.jobs)
    found = [
        replace(complaint, about=tuple(dict.fromkeys(stages)))
        for complaint, stages in complaints.items()
    ]
    if not any(each.verdict in ("problem", "warning") for each in found):
        names = dict.fromkeys(
            name for each in settled for name in _partition_names(each, cluster) if name
        )
        text = f"{len(settled)} jobs fit {named(names)}: time, memory, nodes, GPUs"
        found.append(PreflightFinding(check="partition", verdict="ok", message=text, online=True))
    return found


def _of_job(job: ResolvedRequest, cluster: Cluster) -> Iterator[PreflightFinding]:
    names = _partition_names(job, cluster)
    if not names:
        yield problem(
            "partition",
            "no partition is named, and the cluster has no default one",
            f"name one: {setting_place(job, 'partition')}; there are {named(cluster.partitions)}",
        )
        return
    tried: list[list[PreflightFinding]] = []
    for name in names:
        partition = cluster.partitions.get(name)
        if partition is None:
            hint = did_you_mean(name, tuple(cluster.partitions))
            there = hint or f"there are {named(cluster.partitions)}"
            whose = job.placed["partition"].source
            tried.append([problem("partition", f"no partition `{name}` ({whose})", there)])
        else:
            tried.append([*_in_partition(job, partition)])
    # SLURM takes the first partition of a list that can.
    best = min(tried, key=lambda each: sum(one.verdict == "problem" for one in each))
    yield from best
    # Which of several SLURM takes, and so whose accounts and qos count, is not known before.
    known = [cluster.partitions[name] for name in names if name in cluster.partitions]
    only = known[0] if len(known) == 1 else None
    if only is not None:
        yield from _open_to(job, cluster, only)
    yield from _accounting(job, cluster, only)


def _in_partition(job: ResolvedRequest, partition: Partition) -> Iterator[PreflightFinding]:
    name = partition.name
    if partition.state.upper() != "UP":
        yield problem(
            "partition",
            f"the partition `{name}` is {partition.state}: jobs wait there or are refused",
            "choose another, or ask those who run the cluster",
        )
    yield from _time(job, "the partition", name, partition.max_minutes)
    if job.placed["minutes"].value is None and partition.max_minutes is not None:
        usual = partition.default_minutes or partition.max_minutes
        yield warning(
            "time",
            f"nobody says how long it takes; `{name}` ends it after {usual} min",
            f"say {setting_place(job, 'minutes')}",
        )
    nodes = job.number("nodes") or 1
    if partition.max_nodes is not None and nodes > partition.max_nodes:
        yield problem(
            "nodes",
            f"{nodes} nodes ({job.placed['nodes'].source}), and `{name}` gives a job "
            f"{partition.max_nodes} at most",
        )
    memory = job.number("mem_mb")
    if partition.max_memory_mb and memory is not None and memory > partition.max_memory_mb:
        yield problem(
            "memory",
            f"{memory} MiB ({job.placed['mem_mb'].source}), and `{name}` gives a job "
            f"{partition.max_memory_mb} MiB of a node at most",
            f"lower {setting_place(job, 'mem_mb')}",
        )
    yield from on_nodes(job, partition, nodes)


def _open_to(
    job: ResolvedRequest, cluster: Cluster, partition: Partition
) -> Iterator[PreflightFinding]:
    """Whether a partition admits the job's account (the user's default one where nobody names any)
    and qos."""
    account, qos = job.word("account"), job.word("qos")
    source = job.placed["account"].source
    if not account:
        account, source = cluster.default_account, "your default account"
    if account and (
        (partition.accounts is not None and account not in partition.accounts)
        or account in partition.denied_accounts
    ):
        there = named(partition.accounts) if partition.accounts else "all but some"
        yield problem(
            "account",
            f"`{partition.name}` is not open to the account `{account}` ({source})",
            f"it is open to {there}",
        )
    if qos and partition.qos is not None and qos not in partition.qos:
        yield problem(
            "qos",
            f"`{partition.name}` does not allow the qos `{qos}` ({job.placed['qos'].source})",
            f"it allows {named(partition.qos)}",
        )


def _accounting(
    job: ResolvedRequest, cluster: Cluster, partition: Partition | None
) -> Iterator[PreflightFinding]:
    """Whether the accounting lets the user charge the account, and its limits hold the job."""
    usable = _associations(job, cluster)
    if usable is None:
        yield _foreign_account(job, cluster)
        usable = []
    if (missing := _missing_qos(job, cluster)) is not None:
        yield missing
        return
    yield from _qos_of_user(job, usable)
    yield from _limits_of_qos(job, cluster, partition)
    yield from _limit_of_account(job, usable)


def _associations(job: ResolvedRequest, cluster: Cluster) -> list[Association] | None:
    """Those of the user that the job may be charged to, none where users need not be known; None
    where its account is not among them."""
    account, mine = job.word("account"), cluster.associations
    usable = [each for each in mine or () if account in (None, each.account)]
    return None if mine is not None and account and not usable else usable


def _foreign_account(job: ResolvedRequest, cluster: Cluster) -> PreflightFinding:
    mine = tuple(each.account for each in cluster.associations or ())
    account = str(job.word("account"))
    return problem(
        "account",
        f"you may not charge the account `{account}` ({job.placed['account'].source})",
        did_you_mean(account, mine) or f"yours: {named(mine)}",
    )


def _missing_qos(job: ResolvedRequest, cluster: Cluster) -> PreflightFinding | None:
    qos = job.word("qos")
    if not qos or cluster.qos is None or qos in cluster.qos:
        return None
    return problem(
        "qos",
        f"the cluster has no qos `{qos}` ({job.placed['qos'].source})",
        did_you_mean(qos, tuple(cluster.qos)) or f"there are {named(cluster.qos)}",
    )


def _qos_of_user(job: ResolvedRequest, usable: Sequence[Association]) -> Iterator[PreflightFinding]:
    qos = job.word("qos")
    if qos and usable and all(each.qos and qos not in each.qos for each in usable):
        yield problem(
            "qos",
            f"you may not use the qos `{qos}` ({job.placed['qos'].source})",
            f"yours: {named(name for each in usable for name in each.qos)}",
        )


def _limits_of_qos(
    job: ResolvedRequest, cluster: Cluster, partition: Partition | None
) -> Iterator[PreflightFinding]:
    """The limits of the job's qos, and of the one that its partition sets."""
    names = (job.word("qos"), None if partition is None else partition.own_qos)
    for name in dict.fromkeys(name for name in names if name):
        held = (cluster.qos or {}).get(name)
        if held is not None:
            yield from _time(job, "the qos", name, held.max_minutes)
            yield from _amounts(job, name, held.most)


def _limit_of_account(
    job: ResolvedRequest, usable: Sequence[Association]
) -> Iterator[PreflightFinding]:
    if usable and all(each.max_minutes is not None for each in usable):
        most = max(each.max_minutes or 0 for each in usable)
        yield from _time(job, "the account", job.word("account") or usable[0].account, most)


def _time(
    job: ResolvedRequest, owner: str, name: str, most: int | None
) -> Iterator[PreflightFinding]:
    minutes = job.number("minutes")
    if minutes is not None and most is not None and minutes > most:
        yield problem(
            "time",
            f"{minutes} min ({job.placed['minutes'].source}), and {owner} `{name}` ends jobs "
            f"after {most}",
            f"lower {setting_place(job, 'minutes')}: a training that is cut off continues from its "
            "last checkpoint; or choose another partition or qos",
        )


def _amounts(job: ResolvedRequest, qos: str, most: Mapping[str, int]) -> Iterator[PreflightFinding]:
    nodes = job.number("nodes") or 1
    asked = {
        "cpu": ("cpus", (job.number("cpus") or 1) * nodes),
        "mem": ("mem_mb", (job.number("mem_mb") or 0) * nodes),
        "node": ("nodes", nodes),
        "gres/gpu": ("gpus", job.number("gpus") or 0),
    }
    for name, (setting, amount) in asked.items():
        if name in most and amount > most[name]:
            yield problem(
                "qos",
                f"{amount} {setting} ({job.placed[setting].source}), and the qos `{qos}` allows "
                f"{most[name]}",
                f"lower {setting_place(job, setting)}, or choose another qos",
            )


def _partition_names(job: ResolvedRequest, cluster: Cluster) -> list[str]:
    named_ = job.word("partition")
    if named_:
        return [name for name in re.split(r"[,\s]+", named_) if name]
    return [] if cluster.default is None else [cluster.default.name]

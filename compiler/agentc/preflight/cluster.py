"""What SLURM would refuse, or leave in the queue for ever, of what the jobs ask for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agentc.diagnostics.suggest import did_you_mean
from agentc.placement import Settled
from agentc.preflight.finding import Finding, Verdict, named
from agentc.preflight.fitting import Complaint, on_nodes, where_said
from agentc.preflight.slurm_facts import (
    Association,
    Partition,
    Qos,
    read_associations,
    read_partitions,
    read_qos,
)
from agentc.preflight.slurm_query import Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """What SLURM told. `qos` and `associations` are None where no accounting answers."""

    partitions: Mapping[str, Partition]
    qos: Mapping[str, Qos] | None
    associations: tuple[Association, ...] | None

    @property
    def default(self) -> Partition | None:
        """The partition of jobs that name none."""
        return next((each for each in self.partitions.values() if each.default), None)


def read_cluster(answers: Mapping[str, Answer]) -> tuple[Cluster | None, list[Finding]]:
    """The cluster, or None where SLURM does not answer; and what was not answered."""
    silent = [
        Finding(
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
    quiet: list[Finding] = []
    for name in ("qos", "associations"):
        failure = answers[name].failure
        if failure is not None:
            quiet.append(
                Finding(
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
        ),
        quiet,
    )


def check_cluster(settled: Sequence[Settled], cluster: Cluster) -> list[Finding]:
    """A finding for each complaint, with the stages that it holds for; one that says so where
    there is none."""
    complaints: dict[tuple[str, Verdict, str, str | None], list[str]] = {}
    for each in settled:
        for check, verdict, message, fix in _of_job(each, cluster):
            stages = complaints.setdefault((check, verdict, message, fix), [])
            stages += [str(job["stage"]) for job in each.jobs]
    found = [
        Finding(
            check=check,
            verdict=verdict,
            message=message,
            online=True,
            about=tuple(dict.fromkeys(stages)),
            fix=fix,
        )
        for (check, verdict, message, fix), stages in complaints.items()
    ]
    if not any(each.verdict in ("problem", "warning") for each in found):
        names = dict.fromkeys(
            name for each in settled for name in _partition_names(each, cluster) if name
        )
        text = f"{len(settled)} jobs fit {named(names)}: time, memory, nodes, GPUs"
        found.append(Finding(check="partition", verdict="ok", message=text, online=True))
    return found


def _of_job(job: Settled, cluster: Cluster) -> Iterator[Complaint]:
    names = _partition_names(job, cluster)
    if not names:
        yield (
            "partition",
            "problem",
            "no partition is named, and the cluster has no default one",
            f"name one: {where_said(job, 'partition')}; there are {named(cluster.partitions)}",
        )
        return
    tried: list[list[Complaint]] = []
    for name in names:
        partition = cluster.partitions.get(name)
        if partition is None:
            hint = did_you_mean(name, tuple(cluster.partitions))
            there = hint or f"there are {named(cluster.partitions)}"
            whose = job.placed["partition"].source
            tried.append([("partition", "problem", f"no partition `{name}` ({whose})", there)])
        else:
            tried.append([*_in_partition(job, partition)])
    # SLURM takes the first partition of a list that can.
    best = min(tried, key=lambda each: sum(verdict == "problem" for _, verdict, _, _ in each))
    yield from best
    yield from _accounting(job, cluster, names)


def _in_partition(job: Settled, partition: Partition) -> Iterator[Complaint]:
    name = partition.name
    if partition.state.upper() != "UP":
        yield (
            "partition",
            "problem",
            f"the partition `{name}` is {partition.state}: jobs wait there or are refused",
            "choose another, or ask whoever runs the cluster",
        )
    yield from _time(job, "the partition", name, partition.max_minutes)
    if job.placed["minutes"].value is None and partition.max_minutes is not None:
        usual = partition.default_minutes or partition.max_minutes
        yield (
            "time",
            "warning",
            f"nobody says how long it takes; `{name}` ends it after {usual} min",
            f"say {where_said(job, 'minutes')}",
        )
    nodes = job.number("nodes") or 1
    if partition.max_nodes is not None and nodes > partition.max_nodes:
        yield (
            "nodes",
            "problem",
            f"{nodes} nodes ({job.placed['nodes'].source}), and `{name}` gives a job "
            f"{partition.max_nodes} at most",
            None,
        )
    memory = job.number("mem_mb")
    if partition.max_memory_mb and memory is not None and memory > partition.max_memory_mb:
        yield (
            "memory",
            "problem",
            f"{memory} MiB ({job.placed['mem_mb'].source}), and `{name}` gives a job "
            f"{partition.max_memory_mb} MiB of a node at most",
            f"lower {where_said(job, 'mem_mb')}",
        )
    yield from on_nodes(job, partition, nodes)


def _accounting(job: Settled, cluster: Cluster, names: Sequence[str]) -> Iterator[Complaint]:
    account, qos = job.word("account"), job.word("qos")
    partitions = [cluster.partitions[name] for name in names if name in cluster.partitions]
    for partition in partitions[:1] if len(partitions) == 1 else ():
        if account and (
            (partition.accounts is not None and account not in partition.accounts)
            or account in partition.denied_accounts
        ):
            there = named(partition.accounts) if partition.accounts else "all but some"
            yield (
                "account",
                "problem",
                f"`{partition.name}` is not open to the account `{account}` "
                f"({job.placed['account'].source})",
                f"it is open to {there}",
            )
        if qos and partition.qos is not None and qos not in partition.qos:
            yield (
                "qos",
                "problem",
                f"`{partition.name}` does not allow the qos `{qos}` ({job.placed['qos'].source})",
                f"it allows {named(partition.qos)}",
            )
    mine = cluster.associations
    if mine is not None and account and account not in {each.account for each in mine}:
        hint = did_you_mean(account, tuple(each.account for each in mine))
        yield (
            "account",
            "problem",
            f"you may not charge the account `{account}` ({job.placed['account'].source})",
            hint or f"yours: {named(each.account for each in mine)}",
        )
        mine = None
    if qos and cluster.qos is not None and qos not in cluster.qos:
        hint = did_you_mean(qos, tuple(cluster.qos))
        yield (
            "qos",
            "problem",
            f"the cluster has no qos `{qos}` ({job.placed['qos'].source})",
            hint or f"there are {named(cluster.qos)}",
        )
        return
    usable = [each for each in mine or () if account in (None, each.account)]
    if qos and usable and all(each.qos and qos not in each.qos for each in usable):
        allowed = [name for each in usable for name in each.qos]
        yield (
            "qos",
            "problem",
            f"you may not use the qos `{qos}` ({job.placed['qos'].source})",
            f"yours: {named(allowed)}",
        )
    bounds = [p.own_qos for p in partitions[:1] if p.own_qos and len(partitions) == 1]
    for name in dict.fromkeys([*([qos] if qos else []), *bounds]):
        held = (cluster.qos or {}).get(name)
        if held is not None:
            yield from _time(job, "the qos", name, held.max_minutes)
            yield from _amounts(job, name, held.most)
    if usable and all(each.max_minutes is not None for each in usable):
        most = max(each.max_minutes or 0 for each in usable)
        yield from _time(job, "the account", account or usable[0].account, most)


def _time(job: Settled, owner: str, name: str, most: int | None) -> Iterator[Complaint]:
    minutes = job.number("minutes")
    if minutes is not None and most is not None and minutes > most:
        yield (
            "time",
            "problem",
            f"{minutes} min ({job.placed['minutes'].source}), and {owner} `{name}` ends jobs "
            f"after {most}",
            f"lower {where_said(job, 'minutes')}: a training that is cut off goes on from its last "
            "checkpoint; or choose another partition or qos",
        )


def _amounts(job: Settled, qos: str, most: Mapping[str, int]) -> Iterator[Complaint]:
    nodes = job.number("nodes") or 1
    asked = {
        "cpu": ("cpus", (job.number("cpus") or 1) * nodes),
        "mem": ("mem_mb", (job.number("mem_mb") or 0) * nodes),
        "node": ("nodes", nodes),
        "gres/gpu": ("gpus", job.number("gpus") or 0),
    }
    for name, (setting, amount) in asked.items():
        if name in most and amount > most[name]:
            yield (
                "qos",
                "problem",
                f"{amount} {setting} ({job.placed[setting].source}), and the qos `{qos}` allows "
                f"{most[name]}",
                f"lower {where_said(job, setting)}, or choose another qos",
            )


def _partition_names(job: Settled, cluster: Cluster) -> list[str]:
    named_ = job.word("partition")
    if named_:
        return [name for name in re.split(r"[,\s]+", named_) if name]
    return [] if cluster.default is None else [cluster.default.name]

"""What stages ask for against what they are expected to need: time limits, GPU and main memory,
rules that only a profile has, and servers of scope `shared`."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from agentc.cost import Estimate
from agentc.diagnostics.suggest import did_you_mean
from agentc.kinds.table import KINDS
from agentc.memory.cards import card_label
from agentc.memory.need import gigabytes
from agentc.placement import Requests, ResolvedRequest
from agentc.placement.profile import SLURM, Profile
from agentc.preflight.finding import PreflightFinding, named
from agentc.runtime.machine.allocation import memory_limit
from agentc.text import band, format_duration

_MARGIN = 1.25
"""Of a limit above what nine of ten such jobs are expected to take."""
_STEP_MIN = 10


def check_minutes(
    settled: Sequence[ResolvedRequest], estimates: Mapping[str, Estimate]
) -> Iterator[PreflightFinding]:
    """A job that will probably be cut off, or may well be where like jobs were measured."""
    for each in settled:
        minutes = each.number("minutes")
        known = [found for job in each.jobs if (found := estimates.get(str(job["id"])))]
        if minutes is None or not known:
            continue
        # Members of a session run beside each other.
        longest = max(known, key=lambda one: one.seconds.median)
        seconds, limit = longest.seconds, 60 * minutes
        if seconds.median <= limit and (seconds.high <= limit or not longest.like):
            continue
        ends = band(format_duration(seconds.low), format_duration(seconds.high))
        ends += "; " if ends else ""
        wanted = math.ceil(_MARGIN * seconds.high / 60 / _STEP_MIN) * _STEP_MIN
        yield PreflightFinding(
            check="time",
            verdict="warning",
            message=f"{longest.stage} is expected to take {format_duration(seconds.median)} "
            f"({ends}{longest.basis}), and gets {minutes} min ({each.placed['minutes'].source})",
            about=(longest.stage,),
            fix="a job that is cut off continues from what it saved, as often as `retries` allows; "
            f"to spare that set `placement: {{minutes: {wanted}}}` (it changes no key)",
        )


_MIB = 2**20
KEYS_AND_VALUES = "keys and values"
"""Their name among the parts of a server's memory (`agentc.memory.need`)."""
_SPARE = 1.1
"""What jobs are asked for above what is expected: less than that is a warning, less than what is
expected a problem."""


def check_memory(settled: Sequence[ResolvedRequest], *, here: bool) -> Iterator[PreflightFinding]:
    """GPUs, then main memory; `here`: the jobs run on this machine."""
    needs = [(each, job) for each in settled for job in each.jobs if job.get("memory")]
    yield from _gpus([job for _, job in needs])
    machine = memory_limit(os.environ) if here else None
    alike: dict[tuple[object, ...], list[Mapping[str, Any]]] = {}
    requests: list[ResolvedRequest] = []
    for each, job in needs:
        asked = each.placed.get("mem_mb")
        said = () if asked is None else (each.number("mem_mb"), asked.source)
        jobs = alike.setdefault((*said, job["memory"]["mem_mb"]), [])
        if not jobs:
            requests.append(each)
        jobs.append(job)
    for request, jobs in zip(requests, alike.values(), strict=True):
        yield from _main(request, jobs, machine)


def _gpus(jobs: Sequence[Mapping[str, Any]]) -> Iterator[PreflightFinding]:
    placed = [job for job in jobs if job["memory"]["gpus"]]
    known = [job for job in placed if job["memory"].get("room")]
    if known:
        job = max(known, key=lambda each: each["memory"]["device"] / each["memory"]["room"])
        memory = job["memory"]
        fits = memory["device"] <= memory["room"]
        yield PreflightFinding(
            check="GPU memory",
            verdict="ok" if fits else "problem",
            message=f"{job['stage']} needs most of its GPUs: {gigabytes(memory['device'])} of "
            f"{gigabytes(memory['room'])} GB ({card_label(memory['card'])})",
            about=_stages([job]),
        )
    unknown = [job for job in placed if not job["memory"].get("room")]
    if unknown:
        job = max(unknown, key=lambda each: each["memory"]["device"])
        need = gigabytes(job["memory"]["device"])
        yield PreflightFinding(
            check="GPU memory",
            verdict="unknown",
            message=f"{job['stage']} needs {need} GB of each GPU, and nobody says what one holds",
            about=_stages(unknown),
            fix="say it, such as `placement: {gpu: a100-80gb}` (it changes no key)",
        )


def _main(
    settled: ResolvedRequest, jobs: Sequence[Mapping[str, Any]], machine: tuple[float, str] | None
) -> Iterator[PreflightFinding]:
    """Of jobs that are asked for the same, and whose models take the same."""
    asked, needed = settled.number("mem_mb"), int(jobs[0]["memory"]["mem_mb"])
    stage = jobs[0]["stage"]
    least = round(needed / _SPARE)
    if asked is not None and asked < needed:
        yield PreflightFinding(
            check="memory",
            verdict="problem" if asked < least else "warning",
            message=f"{asked} MiB ({settled.placed['mem_mb'].source}), and the model of {stage} "
            f"takes about {least} MiB",
            about=_stages(jobs),
            fix=f"leave mem_mb out there, or ask for {needed}",
        )
    if machine is None:
        return
    fixed = 0 if jobs[0]["memory"]["gpus"] else round(_fixed(jobs[0]) / _MIB)
    if fixed > machine[0]:
        # No estimate: the server takes all of it at its start.
        yield PreflightFinding(
            check="memory",
            verdict="problem",
            message=f"{int(machine[0])} MiB here ({machine[1]}), and the keys and values of the "
            f"model of {stage} by themselves take {fixed} MiB",
            about=_stages(jobs),
            fix="lower the server's setting for them (`cpu_kv_cache_gb` of `backend: vllm`, "
            "`max_model_len`), or run it where there is more memory",
        )
    elif asked is None and machine[0] < least:
        yield PreflightFinding(
            check="memory",
            verdict="warning",
            message=f"{int(machine[0])} MiB here ({machine[1]}), and the model of {stage} takes "
            f"about {least} MiB",
            about=_stages(jobs),
            fix="run it where there is more, or with a smaller model or shorter rows",
        )


def _fixed(job: Mapping[str, Any]) -> int:
    """Bytes for keys and values, of a job with a server."""
    return int(job["memory"]["parts"].get(KEYS_AND_VALUES, 0))


def _stages(jobs: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(job["stage"]) for job in jobs))


_RULES = frozenset({*(kind.name for kind in KINDS), "session", "server"})


def check_rules(requests: Requests | None) -> Iterator[PreflightFinding]:
    """A warning for each name that is no rule of agentc's: a profile may be of other workflows,
    too."""
    if requests is None:
        return
    for section, names in (("set-resources", requests.forced), ("set-threads", requests.threads)):
        for name in names:
            if name.removesuffix("_local") in _RULES:
                continue
            hint = did_you_mean(name, sorted(_RULES))
            yield PreflightFinding(
                check="profile",
                verdict="warning",
                message=f"`{section}: {name}` of {requests.profile.file} has no effect: agentc has"
                " no such rule",
                fix=hint
                or "rules are named after the kinds of stages; jobs that share a server"
                " are `session`, shared servers are `server`",
            )


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

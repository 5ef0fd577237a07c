"""Every check of preflight over what has to run: for `agentc plan --preflight`, and without SLURM's
limits and the model hub for `agentc run`, before anything is measured, built or downloaded."""

from __future__ import annotations

import os
from collections.abc import Mapping

from agentc.backend_api import BackendTable
from agentc.compilation import Compilation
from agentc.cost import Estimate, Summary
from agentc.placement import Requests, resolve_placement
from agentc.placement.profile import SLURM
from agentc.plan.work import Work
from agentc.preflight import hub, offline
from agentc.preflight.cluster import check_cluster, read_cluster
from agentc.preflight.finding import PreflightFinding
from agentc.preflight.machine import (
    check_boxes,
    check_browsers,
    check_job_servers,
    check_job_variables,
    check_machine,
)
from agentc.preflight.queue import check_job_counts
from agentc.preflight.reachable import check_package_index, check_queue
from agentc.preflight.requests import check_memory, check_minutes, check_rules, check_shared_servers
from agentc.preflight.slurm_facts import ask_slurm
from agentc.preflight.software import check_gpu_software, check_software
from agentc.run.snakemake_process import at_once
from agentc.software.requirements import needed_by_plan


def every_check(
    work: Work,
    compiled: Compilation,
    table: BackendTable,
    requests: Requests | None,
    cost: tuple[Mapping[str, Estimate], Summary | None],
    *,
    online: bool,
    reach: bool,
) -> list[PreflightFinding]:
    """Findings about the jobs that have to run, under the profile of `requests`. `reach`: look
    whether SLURM's queue and the package index answer. `online`: query SLURM's limits and the
    model hub."""
    assert compiled.plan is not None
    profile = None if requests is None else requests.profile
    cluster = profile is not None and profile.queued
    estimates, expected = cost
    settled = resolve_placement(work.document, requests, [str(job["id"]) for job in work.missing])
    queued = [each for each in settled if not each.local]
    files = hub.files_of(work.missing)
    found = [
        *offline.check_disk(work.layout, expected),
        *offline.check_shared(work.layout, profile),
        *offline.check_programs(profile),
        *check_rules(requests),
        *check_software(compiled.plan, work, profile),
        *offline.check_secrets(compiled, work),
        *offline.check_ports(work, profile),
        *check_boxes(work, table, elsewhere=cluster),
        *check_browsers(work, table, elsewhere=cluster),
        *offline.check_shapes(settled, table),
        *check_memory(queued, here=not cluster),
        *check_minutes(queued, estimates),
        *check_job_servers(settled),
        *check_shared_servers(settled, profile),
        *check_job_variables(os.environ),
        *([] if cluster else check_machine(settled)),
        *check_gpu_software(settled, compiled.plan.software, work.layout, here=not cluster),
        *hub.check_cached(files),
    ]
    if reach:
        found += check_package_index(
            needed_by_plan(compiled.plan, {str(job["id"]) for job in work.missing}), work.layout
        )
        found += check_queue(profile if queued else None)
    if online and profile is not None and profile.executor == SLURM and queued:
        answered, silent = read_cluster(ask_slurm())
        found += silent
        if answered is not None:
            found += check_cluster(queued, answered)
            found += check_job_counts(queued, answered, at_once(profile, None) or len(queued))
    if online:
        found += hub.check_hub(files)
    return found

"""Plans made by hand, for tests of what works on plans alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tests.support.drafted import job_draft, lease_draft

from agentc.backend_api import BackendTable
from agentc.diagnostics import Sink
from agentc.diagnostics.diagnostic import Source, Span
from agentc.kinds.field import Json
from agentc.passes import PassContext, Unit
from agentc.passes.lower import assign_keys
from agentc.passes.servers import fuse_servers
from agentc.plan.job import Job, JobBody, Lease, Plan, Resources, SoftwareLock, SourcePlace
from agentc.syntax.nodes import Spec

LOCK = SoftwareLock(name="empty", lock="# a stack without packages\n")
CODE = (
    "import json, pathlib, sys; job = json.load(open(sys.argv[-1]));"
    "pathlib.Path(job['out'], 'made.txt').write_text(job['id'])"
)
_SOURCE = Source("toy.yaml", "agentc: 1\n")
_SPEC = Spec(source=_SOURCE, span=Span(_SOURCE, 1, 1, 1, 2))


def job(
    name: str,
    kind: str = "sft",
    *,
    served: str | None = None,
    settings: Mapping[str, Json] | None = None,
    version: int = 1,
    server: Mapping[str, Json] | None = None,
    resources: Resources | None = None,
    placement: Mapping[str, Json] | None = None,
    round: int | None = None,
    **inputs: Sequence[str],
) -> Job:
    """A job that writes a file. `served` names the job whose checkpoint a leased server needs."""
    leases: tuple[Lease, ...] = ()
    wired = {role: tuple(names) for role, names in inputs.items()}
    if served is not None:
        wired["model"] = (served,)
        leases = (lease(server or {}),)
    return Job(
        body=JobBody(
            draft=job_draft(
                kind=kind,
                backend=f"toy.{kind}",
                version=version,
                program=("-c", CODE),
                config={},
                inputs={},
                produces="Toy",
                placement=placement or {},
            ),
            software="empty",
            identity={"settings": {"name": name} if settings is None else settings, "facts": {}},
        ),
        id=name,
        stage=name.split(":")[0],
        inputs=wired,
        origin=SourcePlace(file="toy.yaml", line=1, column=1),
        leases=leases,
        resources=resources or Resources(),
        round=round,
    )


def lease(identity: Mapping[str, Json]) -> Lease:
    return Lease(
        draft=lease_draft(
            role="policy",
            backend="serve.toy",
            version=1,
            program=("-m", "toy"),
            identity=identity,
            input="model",
            ready_timeout_s=5.0,
        ),
        software="empty",
    )


def plan(*jobs: Job, fuse: bool = True, lock: SoftwareLock = LOCK) -> Plan:
    """The plan of jobs in topological order: keyed, and fused unless told otherwise."""
    bare = Plan(
        name="toy",
        spec_file="toy.yaml",
        spec_sha256="0" * 64,
        params={},
        software={"empty": lock},
        jobs=jobs,
    )
    context = PassContext(table=BackendTable({}), sink=Sink(), directory=Path())
    unit = assign_keys(Unit(spec=_SPEC, plan=bare), context)
    unit = fuse_servers(unit, context) if fuse else unit
    assert unit.plan is not None
    read = {parent for one in jobs for parent in one.parents()}
    return replace(unit.plan, targets=tuple(one.id for one in jobs if one.id not in read))

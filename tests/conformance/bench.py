"""Compiles one stage, environment or server alone, with stand-ins for what it needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentc.backend_api import (
    BackendTable,
    EnvironmentBackend,
    JobDraft,
    LowerContext,
    ServerBackend,
    SoftwareEnvironment,
    StageBackend,
    StageView,
)
from agentc.diagnostics import Diagnostic, Sink
from agentc.ir.module import Module, Prompt, Resource, Stage, Value
from agentc.kinds import KINDS, kind_named
from agentc.passes import PassContext, Unit
from agentc.passes.assign_keys import assign_keys
from agentc.passes.lower import lower
from agentc.plan.job import Job
from agentc.plan.render import plan_document
from agentc.source.span import Origin, Source, Span
from agentc.syntax.nodes import Spec

SOURCE = Source("bench.yaml", "agentc: 1\n")
SPAN = Span(SOURCE, 1, 1, 1, 7)
ORIGIN = Origin(SPAN)
NONE = SoftwareEnvironment(name="none", lock="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The jobs of the stage, as they are written, and their keys; or what was reported."""

    jobs: tuple[Job, ...]
    written: tuple[Mapping[str, Any], ...]
    keys: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...]

    @property
    def codes(self) -> set[str]:
        return {found.code for found in self.diagnostics if found.severity == "error"}


def _producer(name: str, kind: str) -> tuple[Stage, StageBackend]:
    def yields(stage: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
        return (
            JobDraft(
                kind=kind,
                backend=f"made.{name}",
                version=1,
                software=NONE,
                program=(),
                view=stage,
                config={},
                inputs={},
                produces="Made",
            ),
        )

    made = StageBackend(
        id=f"made.{name}", kind=kind, version=1, doc="", software=NONE, lower=yields
    )
    stage = Stage(
        id=name,
        kind=kind,
        backend=made.id,
        fields={},
        options={},
        inputs={},
        uses={},
        origin=ORIGIN,
    )
    return stage, made


def compile_stage(
    backend: StageBackend,
    table: BackendTable,
    values: Mapping[str, Any],
    *,
    environment: Mapping[str, Any] | None = None,
    server: tuple[str, Mapping[str, Any]] = ("serve.scripted", {}),
    instruction: str = "Act.",
    directory: Path = Path(),
) -> Outcome:
    """Lower one stage of a backend with the given values of fields and options."""
    kind = kind_named(backend.kind)
    assert kind is not None
    options = {field.name for field in backend.options}
    makers = {artifact.name: k.name for k in KINDS for artifact in (k.produces,)}
    producers = [_producer(f"in_{role.name}", makers[role.accepts[0].name]) for role in kind.roles]
    stage = Stage(
        id="tested",
        kind=kind.name,
        backend=backend.id,
        fields={n: Value(v, SPAN) for n, v in values.items() if n not in options},
        options={n: Value(v, SPAN) for n, v in values.items() if n in options},
        inputs={role.name: (f"in_{role.name}",) for role in kind.roles},
        uses={"environment": "world", "server": "server", "prompt": "prompt"},
        origin=ORIGIN,
    )
    module = Module(
        name="bench",
        stages={**{made.id: made for made, _ in producers}, "tested": stage},
        environments={"world": _resource("world", "env.textcraft", environment or {})},
        servers={"server": _resource("server", *server)},
        prompts={
            "prompt": Prompt(
                name="prompt",
                instruction=instruction,
                acknowledgement="OK",
                examples=(),
                reply_format="react",
                origin=ORIGIN,
            )
        },
        origin=ORIGIN,
    )
    everything = BackendTable({**table.backends, **{made.id: made for _, made in producers}})
    return _outcome(module, everything, directory)


def _resource(name: str, backend: str, values: Mapping[str, Any]) -> Resource:
    return Resource(
        name=name,
        backend=backend,
        fields={n: Value(v, SPAN) for n, v in values.items()},
        options={},
        origin=ORIGIN,
    )


def compile_resource(
    backend: EnvironmentBackend | ServerBackend, table: BackendTable, values: Mapping[str, Any]
) -> Outcome:
    """Lower a rollout that leases an environment or server with the given values."""
    rollout = table.backends["rollout.react"]
    assert isinstance(rollout, StageBackend)
    if isinstance(backend, ServerBackend):
        return compile_stage(rollout, table, {"split": "test"}, server=(backend.id, values))
    renamed = {**table.backends, "env.textcraft": backend}
    return compile_stage(rollout, BackendTable(renamed), {"split": "test"}, environment=values)


def _outcome(module: Module, table: BackendTable, directory: Path) -> Outcome:
    sink = Sink()
    context = PassContext(table=table, sink=sink, directory=directory)
    unit = lower(Unit(spec=Spec(source=SOURCE, span=SPAN), module=module), context)
    plan = assign_keys(unit, context).plan
    jobs = () if plan is None else tuple(job for job in plan.jobs if job.stage == "tested")
    written: list[Mapping[str, Any]] = []
    if plan is not None:
        document: Any = plan_document(plan)
        for job in document["jobs"]:
            if job["stage"] == "tested":
                # What a job is told, without what says who it is.
                written.append({n: v for n, v in job.items() if n not in ("key", "identity")})
                for lease in written[-1]["leases"]:
                    lease.pop("identity")
                written[-1].pop("inputs")
    return Outcome(
        jobs=jobs,
        written=tuple(written),
        keys=tuple(job.key for job in jobs),
        diagnostics=sink.sorted(),
    )

"""Compiles one stage, environment or server alone, with made-up neighbours for what it needs."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from agentc.backend_api import (
    OWN_LOOP,
    TASKSET,
    Backend,
    BackendTable,
    EnvironmentBackend,
    JobDraft,
    LeaseDraft,
    LowerContext,
    OptionView,
    ServerBackend,
    SimulatorRole,
    Software,
    StageBackend,
    StageView,
)
from agentc.diagnostics import Diagnostic, Sink
from agentc.diagnostics.diagnostic import Origin, Source, Span
from agentc.ir.module import ALGORITHM, Body, Module, Prompt, Resource, Stage, Value, shape_of
from agentc.kinds import KINDS, kind_named
from agentc.kinds.field import string
from agentc.passes import PassContext, Unit
from agentc.passes.lower import assign_keys, lower
from agentc.passes.lowering.leases import attempt_resource
from agentc.plan.job import Job, SoftwareLock
from agentc.plan.render import plan_document
from agentc.syntax.nodes import Spec

TESTED = "tested"
SPLITS = ("train", "test", "sample", "other")
"""Splits of the made-up environment: `sample` and `other` are what text settings are flipped to."""
_ENVIRONMENT, _SERVER, _ACTOR = "env.made", "serve.made", "made.rollout"
_SOURCE = Source("bench.yaml", "agentc: 1\n")
_SPAN = Span(_SOURCE, 1, 1, 1, 7)
_ORIGIN = Origin(_SPAN)
_NONE = Software(name="none", lock="")
_FLAVOUR = string("flavour", "Distinguishes made-up neighbours.", "plain")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoweringOutcome:
    """The jobs of the stage, as they are written, and their keys; or what was reported.

    `written` is what plan.json says of each job less its identity and inputs: what the job
    receives, without what identifies it. `locks` are the software stacks by name.
    """

    jobs: tuple[Job, ...]
    written: tuple[Mapping[str, Any], ...]
    keys: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...]
    locks: Mapping[str, SoftwareLock]

    @property
    def codes(self) -> set[str]:
        """Codes of the errors."""
        return {found.code for found in self.diagnostics if found.severity == "error"}

    def complaints(self) -> str:
        """The errors in one line, for messages, each with what would mend it."""
        return "; ".join(
            f"{d.code} {d.message}" + (f", help: {d.fix}" if d.fix else "")
            for d in self.diagnostics
            if d.severity == "error"
        )

    def text(self) -> str:
        """What the jobs are told and their keys, as one text."""
        return json.dumps([self.written, self.keys], sort_keys=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Where backends are tried: the installed ones, and the folder that settings with paths start
    from."""

    table: BackendTable
    directory: Path

    def stage(
        self,
        backend: StageBackend,
        values: Mapping[str, Any],
        *,
        without: Collection[str] = (),
        instruction: str = "Act.",
        environment: str = "plain",
        server: str = "plain",
    ) -> LoweringOutcome:
        """Lower one stage of a backend with the given values of fields and options, and with all
        inputs but those `without`. `environment` and `server` are flavours of its neighbours."""
        environments = {"world": _resource("world", _ENVIRONMENT, {"flavour": environment})}
        servers = {"server": _resource("server", _SERVER, {"flavour": server})}
        return self._compile(backend, values, without, instruction, environments, servers)

    def resource(
        self, backend: EnvironmentBackend | ServerBackend, values: Mapping[str, Any]
    ) -> LoweringOutcome:
        """Lower a rollout that leases an environment or server with the given values."""
        own = _resource("own", backend.id, values)
        worlds = {"world": _resource("world", _ENVIRONMENT, {})}
        servers = {"server": _resource("server", _SERVER, {})}
        made: list[ServerBackend] = []
        if isinstance(backend, EnvironmentBackend):
            # It asks as many models as its lease needs with these values.
            told = {}
            for role in self._simulator_roles(backend, own):
                made.append(_endpoint(role))
                servers[made[-1].id] = _resource(made[-1].id, made[-1].id, {})
                told[str(role.name)] = Value({"server": made[-1].id}, _SPAN)
            worlds = {"world": replace(own, simulators=told)}
        else:
            servers = {"server": own}
        return self._compile(
            _MADE[_ACTOR], {"split": "train"}, (), "Act.", worlds, servers, backend, *made
        )

    def _simulator_roles(self, backend: EnvironmentBackend, entry: Resource) -> list[SimulatorRole]:
        """The model servers that the entry's lease needs."""
        attempt = attempt_resource(entry, BackendTable({backend.id: backend}))
        needs = () if attempt is None or attempt.lease is None else attempt.lease.needs
        return [role for role in backend.simulators if role.name in needs]

    def _compile(
        self,
        backend: Backend,
        values: Mapping[str, Any],
        without: Collection[str],
        instruction: str,
        environments: Mapping[str, Resource],
        servers: Mapping[str, Resource],
        *further: Backend,
    ) -> LoweringOutcome:
        assert isinstance(backend, StageBackend)
        kind = kind_named(backend.kind)
        assert kind is not None
        options = {field.name for field in backend.options}
        if backend.algorithms:
            values = {ALGORITHM: backend.algorithms[0], **values}
        given = [role for role in kind.roles if backend.takes(role.name)]
        roles = [role for role in given if role.name not in without]
        makers = {k.produces.name: k.name for k in KINDS}
        made = [_producer(f"in_{role.name}", makers[role.accepts[0].name]) for role in roles]
        inputs = {role.name: (f"in_{role.name}",) for role in roles}
        body = Body(
            kind=kind.name,
            backend=backend.id,
            fields={n: Value(v, _SPAN) for n, v in values.items() if n not in options},
            options={n: Value(v, _SPAN) for n, v in values.items() if n in options},
            uses={"environment": "world", "server": "server", "prompt": "prompt"},
            shape=shape_of(inputs),
        )
        tested = Stage(id=TESTED, body=body, inputs=inputs, origin=_ORIGIN)
        module = Module(
            name="bench",
            stages={**{stage.id: stage for stage, _ in made}, TESTED: tested},
            environments=environments,
            servers=servers,
            prompts={"prompt": _prompt(instruction)},
            origin=_ORIGIN,
        )
        # In the software of the job: it could be opened in the job's own process.
        world = _environment(backend.software)
        neighbours = {**_MADE, world.id: world, **{maker.id: maker for _, maker in made}}
        own = {one.id: one for one in (backend, *further)}
        table = BackendTable({**self.table.backends, **neighbours, **own})
        return _outcome(module, table, self.directory)


def _outcome(module: Module, table: BackendTable, directory: Path) -> LoweringOutcome:
    sink = Sink()
    context = PassContext(table=table, sink=sink, directory=directory)
    unit = lower(Unit(spec=Spec(source=_SOURCE, span=_SPAN), module=module), context)
    plan = assign_keys(unit, context).plan
    jobs = () if plan is None else tuple(job for job in plan.jobs if job.stage == TESTED)
    written: list[dict[str, Any]] = []
    if plan is not None:
        document: Any = plan_document(plan)
        for job in document["jobs"]:
            if job["stage"] == TESTED:
                written.append({n: v for n, v in job.items() if n not in ("key", "identity")})
                for lease in written[-1]["leases"]:
                    lease.pop("identity")
                written[-1].pop("inputs")
    return LoweringOutcome(
        jobs=jobs,
        written=tuple(written),
        keys=tuple(job.key for job in jobs),
        diagnostics=sink.sorted(),
        locks={} if plan is None else plan.software,
    )


def _producer(name: str, kind: str) -> tuple[Stage, StageBackend]:
    def yields(stage: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
        return (_draft(kind, f"made.{name}", stage, "Made"),)

    maker = StageBackend(
        id=f"made.{name}", kind=kind, version=1, doc="", software=_NONE, lower=yields
    )
    body = Body(kind=kind, backend=maker.id)
    return Stage(id=name, body=body, inputs={}, origin=_ORIGIN), maker


def _draft(
    kind: str, backend: str, view: StageView, produces: str, *leases: LeaseDraft
) -> JobDraft:
    return JobDraft(
        kind=kind,
        backend=backend,
        version=1,
        software=_NONE,
        program=(),
        view=view,
        config={},
        inputs=dict(view.inputs),
        produces=produces,
        leases=leases,
    )


def _act(stage: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    """The made-up rollout: it only leases what the stage names."""
    stage.get("split")
    capabilities = context.environment_facts(stage)["capabilities"]
    own_loop = isinstance(capabilities, list) and OWN_LOOP in capabilities
    worlds = (context.environment_lease(stage),) if own_loop else context.environment_leases(stage)
    leases = (context.server_lease(stage, "model"), *worlds)
    context.prompt(stage)
    return (_draft("rollout", _ACTOR, stage, "Trajectories", *leases),)


def _lease_environment(software: Software, options: OptionView) -> LeaseDraft:
    flavour = options.text("flavour")
    return LeaseDraft(
        role="environment",
        backend=_ENVIRONMENT,
        version=1,
        software=software,
        program=("--flavour", flavour),
        identity=options.identity(),
        inside=True,
    )


def _environment(software: Software) -> EnvironmentBackend:
    return EnvironmentBackend(
        id=_ENVIRONMENT,
        version=1,
        doc="A made-up environment.",
        software=software,
        lease=partial(_lease_environment, software),
        fields=(_FLAVOUR,),
        splits=SPLITS,
        max_turns=60,
        capabilities=frozenset({"expert", "fork", "snapshot", "seed", "privileged", TASKSET}),
    )


def _lease_server(options: OptionView) -> LeaseDraft:
    flavour = options.text("flavour")
    return LeaseDraft(
        backend=_SERVER,
        version=1,
        software=_NONE,
        program=("--flavour", flavour),
        identity=options.identity(),
        capabilities=_SERVER_CAPABILITIES,
    )


def _endpoint(role: SimulatorRole) -> ServerBackend:
    """A made-up endpoint of somebody else that an environment may ask: no model has to be made."""
    name = f"made.{role.name}"
    capabilities = frozenset({"remote", role.capability})

    def lease(options: OptionView) -> LeaseDraft:
        return LeaseDraft(
            backend=name,
            version=1,
            software=None,
            program=(),
            identity=options.identity(),
            port="none",
            url="http://127.0.0.1:1/v1",
            capabilities=capabilities,
        )

    return ServerBackend(
        id=name,
        version=1,
        doc="A made-up endpoint.",
        software=_NONE,
        lease=lease,
        capabilities=capabilities,
    )


_SERVER_CAPABILITIES = frozenset(
    {"chat", "completions", "logprobs", "token_ids", "scoring", "seed", "stop", "reload", "cpu"}
)
_MADE: Mapping[str, Backend] = {
    _SERVER: ServerBackend(
        id=_SERVER,
        version=1,
        doc="A made-up model server.",
        software=_NONE,
        lease=_lease_server,
        fields=(_FLAVOUR,),
        capabilities=_SERVER_CAPABILITIES,
    ),
    _ACTOR: StageBackend(
        id=_ACTOR,
        kind="rollout",
        version=1,
        doc="A made-up rollout.",
        software=_NONE,
        lower=_act,
    ),
}


def _prompt(instruction: str) -> Prompt:
    return Prompt(
        name="prompt",
        instruction=instruction,
        acknowledgement="OK",
        examples=(),
        reply_format="react",
        origin=_ORIGIN,
    )


def _resource(name: str, backend: str, values: Mapping[str, Any]) -> Resource:
    return Resource(
        name=name,
        backend=backend,
        fields={n: Value(v, _SPAN) for n, v in values.items()},
        options={},
        origin=_ORIGIN,
    )

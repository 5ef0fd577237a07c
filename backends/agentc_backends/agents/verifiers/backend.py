"""Declares `rollout.verifiers` and lowers a rollout stage to its one job, which plays the tasks of
a taskset under verifiers' own harness.

`taskset_job` also serves `evaluate.verifiers`, which keeps episodes without a proof, too.
"""

from __future__ import annotations

from agentc.backend_api import (
    TASKSET,
    JobDraft,
    LeaseDraft,
    LowerContext,
    StageBackend,
    StageView,
)
from agentc.kinds.field import Json
from agentc.kinds.interaction import RepeatedEpisodes
from agentc.kinds.settings import fields_of
from agentc_backends.agents.common.lowering import episode_config
from agentc_backends.agents.recording.lowering import recorded_job, refuse_drop_oldest, token_server
from agentc_backends.agents.verifiers.settings import TasksetOptions
from agentc_backends.software import VERIFIERS

ID = "rollout.verifiers"
VERSION = 2

OPTIONS = fields_of(TasksetOptions)

UNUSED = {
    "prefix": "a harness begins every episode at its start",
    "on_invalid": "the taskset reads the replies",
    "prompt_seed": "a task of a taskset has one prompt",
    "environment_at": "a taskset has no server",
}


def lower(stage: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    """One job that plays the episodes."""
    return (taskset_job(stage, context, name="", keeps_all=False),)


def taskset_lease(view: StageView, context: LowerContext) -> LeaseDraft:
    """The stage's taskset, as its entry declares it; refused where it is something else."""
    world = context.environment_lease(view)
    told = context.environment_facts(view)["capabilities"]
    if not isinstance(told, list) or TASKSET not in told:
        view.refuse(
            "environment",
            f"{world.backend} is no taskset of verifiers",
            fix="give the stage an environment of `backend: verifiers`, or another backend",
        )
    return world


def taskset_job(stage: StageView, context: LowerContext, *, name: str, keeps_all: bool) -> JobDraft:
    """The job that plays, reading through a view of its own. `keeps_all`: episodes of which no row
    can be proved are rows, too, marked as such."""
    view = stage.scoped()
    facts, world = context.environment_facts(view), taskset_lease(view, context)
    server, tells = token_server(view, context, keeps_all=keeps_all)
    _refuse(view)
    refuse_drop_oldest(view, "the harness")
    environment: Json = {"id": world.backend, "version": world.version, **world.identity}
    config: dict[str, Json] = {
        **episode_config(view, facts, None, RepeatedEpisodes),
        "world": {**(world.settings or {}), "environment": environment},
        "harness": view.get("harness"),
    }
    return recorded_job(
        view,
        facts=facts,
        config=config,
        identity={"environment": environment},
        tells=tells,
        keeps_all=keeps_all,
        name=name,
        backend=ID,
        version=VERSION,
        software=VERIFIERS,
        program=("-m", "agentc_backends.agents.verifiers.job_taskset"),
        inputs={"model": stage.inputs["model"]},
        leases=(server,),
    )


def _refuse(view: StageView) -> None:
    """What a harness of others decides by itself."""
    if view.inputs.get("prefixes"):
        view.refuse("prefixes", "a harness begins its own episodes", fix="remove it")
    if view.integer("candidates") > 1:
        view.refuse("candidates", "a harness takes each reply as it is", fix="remove it")


BACKEND = StageBackend(
    id=ID,
    example="environment: sums",
    kind="rollout",
    version=VERSION,
    doc="Episodes of a taskset of the package verifiers, played by its own harness: rewards are "
    "the taskset's. Rows are rebuilt of what was recorded, token by token; episodes without a "
    "proof are counted and left out.",
    software=VERIFIERS,
    lower=lower,
    capabilities=frozenset({"resume", "infrastructure_errors"}),
    options=OPTIONS,
    inputs=("model",),
    unused=UNUSED,
)

"""Declares `evaluate.agent`: an evaluation is a rollout, equal to that of a rollout stage with the
same settings (and sharing its result), and a small job that computes the metrics."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from agentc.backend_api import JobDraft, LeaseDraft, LowerContext, StageBackend, StageView
from agentc.kinds.artifacts import METRICS
from agentc.kinds.evaluation import Loops
from agentc.kinds.field import Json
from agentc.program.settings import declared_in
from agentc_backends.agents.command.backend import OPTIONS as COMMAND_OPTIONS
from agentc_backends.agents.command.backend import UNUSED as COMMAND_UNUSED
from agentc_backends.agents.command.backend import command_job
from agentc_backends.agents.common.settings import ActionRules
from agentc_backends.agents.rollout.backend import OPTIONS, rollout_job
from agentc_backends.agents.verifiers.backend import OPTIONS as TASKSET_OPTIONS
from agentc_backends.agents.verifiers.backend import UNUSED as TASKSET_UNUSED
from agentc_backends.agents.verifiers.backend import taskset_job, taskset_lease
from agentc_backends.software import LIGHT
from agentc_backends.software import VERIFIERS as TASKSETS

_NO_PROTOCOL = ("split", "limit", "seed", "reward_range", "success_at", "prompt", "world")
"""Settings of a rollout that are no part of how its episodes are scored (the tasks and the range of
their rewards are recorded by themselves, a seed only draws), or that `_protocol` puts otherwise.
All the others are, so that a new one is recorded without being named here."""

_PROGRAM = ("words", "python", "files", "params", "tells", "keeps_all")
"""Settings of a program of the user's own; those that are more than a word of it have a digest."""


def lower(stage: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    """Two jobs: `rollout` and the metrics."""
    return _evaluation(BACKEND, rollout_job(stage, context, name="rollout"), stage, context)


def lower_command(stage: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    """The same of episodes that a program of the user's own plays. What it earned counts, whether
    or not a row can be proved."""
    rollout = command_job(stage, context, name="rollout", keeps_all=True)
    return _evaluation(COMMAND, rollout, stage, context)


def lower_verifiers(stage: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    """The same of episodes that a taskset of verifiers plays and scores."""
    rollout = taskset_job(stage, context, name="rollout", keeps_all=True)
    return _evaluation(VERIFIERS, rollout, stage, context)


def _evaluation(
    backend: StageBackend, rollout: JobDraft, stage: StageView, context: LowerContext
) -> tuple[JobDraft, ...]:
    view = stage.scoped()
    facts = context.environment_facts(view)
    config: dict[str, Json] = {
        "success_at": view.get("success_at"),
        "confidence": view.number("confidence"),
        "split": rollout.config["split"],
        "environment": facts["name"],
        "reward_range": facts["reward_range"],
        "protocol": _protocol(rollout, view.get("success_at"), _world(rollout, view, context)),
    }
    config |= _extra_metrics(view, rollout)
    if "reward_name" in facts:
        config["reward_name"] = facts["reward_name"]
    metrics = JobDraft(
        kind="evaluate",
        backend=backend.id,
        version=backend.version,
        software=LIGHT,
        program=("-m", "agentc_backends.agents.evaluate.job_evaluate"),
        view=view,
        config=config,
        inputs={"rollouts": (":rollout",)},
        produces=METRICS.name,
        local=True,
    )
    return (rollout, metrics)


def _extra_metrics(view: StageView, rollout: JobDraft) -> dict[str, Json]:
    """What is measured besides reward and success."""
    asked: dict[str, Json] = {}
    draws, attempts = view.get("best_of"), rollout.config["attempts"]
    if isinstance(draws, list) and draws:
        assert isinstance(attempts, int)
        asked["best_of"] = draws
        most = max(each for each in draws if isinstance(each, int))
        if most > attempts:
            view.refuse(
                "best_of",
                f"the best of {most} cannot be determined from {_attempts(attempts)} at a task",
                fix=f"set attempts: {most}, or a smaller number here",
            )
    if view.get("loops") is not None and "action_span" not in rollout.config:
        view.refuse("loops", "which actions a program reads in its replies is not known",
                    fix="remove it")  # fmt: skip
    elif view.get("loops") is not None:
        prompt = rollout.config["prompt"]
        assert isinstance(prompt, Mapping)
        asked["loops"] = {
            **view.config_of(Loops, "loops"),
            "reply_format": prompt["reply_format"],
            **{each.name: rollout.config[each.name] for each in declared_in(ActionRules)},
        }
    return asked


def _attempts(number: int) -> str:
    return "1 attempt" if number == 1 else f"{number} attempts"


def _world(rollout: JobDraft, view: StageView, context: LowerContext) -> LeaseDraft:
    """The environment, leased or not."""
    leased = [lease for lease in rollout.leases if lease.role == "environment"]
    return leased[0] if leased else taskset_lease(view, context)


def _protocol(rollout: JobDraft, success_at: Json, world: LeaseDraft) -> dict[str, Json]:
    """All that decides what a score means, besides the policy and its tasks: metrics.json has it,
    so that a comparison can say where two differ. It is a function of what the rollout read and of
    its leases, which are in its key."""
    leases = {lease.role: lease for lease in rollout.leases}
    protocol = {n: value for n, value in rollout.config.items() if n not in _NO_PROTOCOL}
    environments_own = rollout.config["success_at"]
    protocol["success_at"] = environments_own if success_at is None else success_at
    protocol["prompt"] = _prompt(rollout.config["prompt"])
    if "files" in protocol:
        protocol["program"] = _program({name: protocol.pop(name) for name in _PROGRAM})
    protocol["environment"] = _environment(world)
    for role in world.needs:  # who speaks there; its model is in the key alone
        protocol[role] = {"backend": leases[role].backend, **_environment(leases[role])}
    if "critic" in rollout.inputs:  # who chose among candidates; which one is in the key alone
        protocol["critic_sees"] = "privileged" if "privileged" in rollout.inputs else "history"
    # With `on_overflow` it decides where an episode ends, or what of it is seen.
    protocol["max_model_len"] = leases["policy"].identity.get("max_model_len")
    return protocol


def _prompt(prompt: Json) -> Json:
    """How replies and observations look, and a digest of its texts in their place."""
    assert isinstance(prompt, Mapping)
    looks: dict[str, Json] = {
        "reply_format": prompt["reply_format"],
        "observation_prefix": prompt["observation_prefix"],
    }
    texts = json.dumps({k: v for k, v in prompt.items() if k not in looks}, sort_keys=True)
    return {**looks, "sha256": hashlib.sha256(texts.encode()).hexdigest()[:16]}


def _program(config: Mapping[str, Json]) -> Json:
    """How a program is started, and a digest of its texts in their place."""
    texts = json.dumps(config["files"], sort_keys=True)
    started = {name: config[name] for name in ("words", "params")}
    return {**started, "sha256": hashlib.sha256(texts.encode()).hexdigest()[:16]}


def _environment(lease: LeaseDraft) -> dict[str, Json]:
    """Its version and the settings that the spec gave it; which tasks its splits hold is seen from
    the tasks themselves."""
    settings = {name: value for name, value in lease.identity.items() if name != "splits"}
    return {"version": lease.version, **settings}


BACKEND = StageBackend(
    id="evaluate.agent",
    kind="evaluate",
    version=3,
    doc="Mean reward and success of a policy on a split, with intervals over tasks; infrastructure "
    "errors are counted and left out.",
    software=LIGHT,
    lower=lower,
    capabilities=frozenset(
        {"react", "react_inline", "action_only", "text", "tools", "output_marker"}
    ),
    options=OPTIONS,
)

COMMAND = StageBackend(
    id="evaluate.command",
    example="{environment: world, options: {run: agent.py}}",
    kind="evaluate",
    version=1,
    doc="The same of episodes that a program of the user's own plays (`rollout.command`); episodes "
    "of which no row could be proved count too.",
    software=LIGHT,
    lower=lower_command,
    capabilities=frozenset({"react", "react_inline", "action_only", "text"}),
    options=COMMAND_OPTIONS,
    inputs=("model",),
    unused=COMMAND_UNUSED,
)

VERIFIERS = StageBackend(
    id="evaluate.verifiers",
    example="environment: sums",
    kind="evaluate",
    version=1,
    doc="The same of a taskset of the package verifiers (`rollout.verifiers`), whose rewards "
    "count; episodes of which no row could be proved count too.",
    software=TASKSETS,
    lower=lower_verifiers,
    options=TASKSET_OPTIONS,
    inputs=("model",),
    unused=TASKSET_UNUSED,
)

"""Declares `rank.advantage`, which serves two models in two jobs, and `rank.value_head`, whose one
job loads its critic."""

from __future__ import annotations

from agentc.backend_api import JobDraft, LeaseDraft, LowerContext, StageBackend, StageView
from agentc.kinds.artifacts import CANDIDATE_SCORES, REWARDED_TURNS
from agentc.kinds.field import Json
from agentc.kinds.search import RankSettings
from agentc_backends.software import LIGHT, TORCH

_REFERENCE = "reference"
_OF_A_HEAD = ("candidates", "critic", "privileged")


def lower(stage: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    """The job of the reference, unless its scores were recorded, and that of the critic."""
    given = stage.scoped()
    sees, span = given.text("reference_context"), given.text("span")
    privileged = stage.inputs.get("privileged", ())
    _refuse(given, stage, sees, bool(privileged))
    placement = given.config_of(RankSettings, placement=True)
    inputs = {"candidates": stage.inputs["candidates"], "critic": stage.inputs["critic"]}
    hidden = {"privileged": privileged} if privileged else {}
    jobs = []
    if sees == "sampler":
        stage.leave(
            _REFERENCE,
            "`reference_context: sampler` takes what the policy recorded when it drew the "
            "candidates",
        )
    else:
        jobs.append(_reference_job(stage, context, sees, placement))
        inputs["scores"] = (f":{_REFERENCE}",)
    jobs.append(
        JobDraft(
            kind="rank",
            backend=BACKEND.id,
            version=BACKEND.version,
            software=LIGHT,
            program=("-m", "agentc_backends.agents.rank.job_rank"),
            view=given,
            config={"span": span},
            placement=placement,
            inputs={**inputs, **hidden},
            produces=REWARDED_TURNS.name,
            leases=(_scoring(given, context, "critic"),),
            resume=True,
        )
    )
    return tuple(jobs)


def _reference_job(
    stage: StageView, context: LowerContext, sees: str, placement: dict[str, Json]
) -> JobDraft:
    """It is of the critic only where it is shown hidden text in the critic's words. A reference
    scores replies with their end, whatever `span` says of the critic: the released script takes
    its reference from what the sampler recorded, and that is such a score."""
    view = stage.scoped()
    view.get("reference_context")
    inputs = {"candidates": stage.inputs["candidates"]}
    inputs[_REFERENCE] = stage.inputs.get(_REFERENCE, ())
    if sees == "privileged":
        inputs["critic"] = stage.inputs["critic"]
        inputs["privileged"] = stage.inputs.get("privileged", ())
    return JobDraft(
        name=_REFERENCE,
        kind="rank",
        backend=BACKEND.id,
        version=BACKEND.version,
        software=LIGHT,
        program=("-m", "agentc_backends.agents.rank.job_reference"),
        view=view,
        config={"context": sees, "span": "reply"},
        placement=placement,
        inputs=inputs,
        produces=CANDIDATE_SCORES.name,
        leases=(_scoring(view, context, _REFERENCE),),
        resume=True,
    )


def _scoring(view: StageView, context: LowerContext, served: str) -> LeaseDraft:
    """The lease of the stage's server with a model of an input; refused where the server says
    nothing of given tokens."""
    server = context.server_lease(view, served)
    if "scoring" not in server.capabilities:
        view.refuse(
            "server",
            f"{server.backend} gives no log-probabilities of tokens that it is given",
            fix="name a server that loads the model itself: `backend: vllm` or `transformers`",
        )
    return server


def _refuse(view: StageView, stage: StageView, sees: str, hidden: bool) -> None:
    """What cannot be, by settings and inputs alone."""
    if sees != "sampler" and not stage.inputs.get(_REFERENCE):
        view.refuse(
            _REFERENCE,
            f"`reference_context: {sees}` scores the candidates with a reference, and the stage "
            "names none",
            fix="name the model that the critic was trained against, or set reference_context: "
            "sampler",
        )
    if sees == "privileged" and not hidden:
        view.refuse(
            "reference_context",
            "`reference_context: privileged` shows the reference hidden texts, and the stage names "
            "no `privileged`",
            fix="set reference_context: history",
        )


BACKEND = StageBackend(
    id="rank.advantage",
    kind="rank",
    version=1,
    doc="Advantages by a critic that is a language model: its mean log-probability of a reply less "
    "the reference's. Both score the very tokens that were drawn.",
    software=LIGHT,
    lower=lower,
    capabilities=frozenset({"log_ratio", "resume", "infrastructure_errors"}),
)


def lower_value_head(view: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    """One job, which loads the critic itself."""
    return (
        JobDraft(
            kind="rank",
            backend=VALUE_HEAD.id,
            version=VALUE_HEAD.version,
            software=TORCH,
            program=("-m", "agentc_backends.agents.rank.job_value_head"),
            view=view,
            config={},
            inputs={role: view.inputs[role] for role in _OF_A_HEAD if view.inputs.get(role)},
            produces=REWARDED_TURNS.name,
            resume=True,
        ),
    )


VALUE_HEAD = StageBackend(
    id="rank.value_head",
    example="{critic: head_critic, reference: null}",
    kind="rank",
    version=1,
    doc="Values by a critic with a head: what the head makes of the history with a reply. It needs "
    "no reference and no server.",
    software=TORCH,
    lower=lower_value_head,
    capabilities=frozenset({"value_head", "resume"}),
    inputs=_OF_A_HEAD,
    unused={
        "reference_context": "a head's value is compared with no reference's",
        "span": "a head's value is compared with no reference's",
        "concurrency": "no server is asked",
        "error_budget": "no server is asked",
    },
)

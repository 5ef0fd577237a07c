"""Declares `sample.turns` and lowers a sample stage to its one job."""

from __future__ import annotations

from agentc.backend_api import JobDraft, LowerContext, StageBackend, StageView
from agentc.kinds.artifacts import CANDIDATES
from agentc.kinds.field import Json
from agentc.kinds.search import DrawnTurns, SampleSettings
from agentc_backends.software import LIGHT

_NEEDED = ("logprobs", "token_ids")
"""What a server has to tell of the replies that it makes."""


def lower(stage: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    """One job; a server that cannot tell the tokens of its replies is refused."""
    view = stage.scoped()
    server = context.server_lease(view, "model")
    if not set(_NEEDED) <= server.capabilities:
        view.refuse(
            "server",
            f"{server.backend} does not return the tokens of its replies and their "
            "log-probabilities, without which no candidate can be ranked",
            fix="name a server that loads the policy itself: `backend: vllm` or `transformers`",
        )
    without: dict[str, str] = {}
    if view.number("fraction") == 1.0 and view.get("limit") is None:
        without["take"] = "every trajectory is taken without `fraction` or `limit`"
    config: dict[str, Json] = {
        "take": "hash",
        **view.config_of(DrawnTurns, without=without),
        "decode": view.get("decode"),  # numbers as the spec writes them
    }
    return (
        JobDraft(
            kind="sample",
            backend=BACKEND.id,
            version=BACKEND.version,
            software=LIGHT,
            program=("-m", "agentc_backends.agents.sample.job_sample"),
            view=view,
            config=config,
            placement=view.config_of(SampleSettings, placement=True),
            inputs={"model": stage.inputs["model"], "rollouts": stage.inputs["rollouts"]},
            produces=CANDIDATES.name,
            leases=(server,),
            contract={"candidates": config["candidates"], "seed": config["seed"]},
            resume=True,
        ),
    )


BACKEND = StageBackend(
    id="sample.turns",
    kind="sample",
    version=2,
    doc="Candidates for turns of episodes, each with its tokens and log-probabilities; results do "
    "not depend on concurrency, and an interrupted run continues.",
    software=LIGHT,
    lower=lower,
    capabilities=frozenset({"resume", "infrastructure_errors"}),
)

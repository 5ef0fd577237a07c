"""Declares `sample.turns` and lowers a sample stage to its one job."""

from __future__ import annotations

from agentc.backend_api import JobDraft, LowerContext, StageBackend, StageView
from agentc.kinds.artifacts import CANDIDATES
from agentc.kinds.field import Json
from agentc_backends.software import LIGHT

_NEEDED = ("logprobs", "token_ids")
"""What a server has to tell of the replies that it makes."""


def lower(stage: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    """One job; a server that cannot tell the tokens of its replies is refused."""
    view = stage.scoped()
    server = context.server_lease(view, "policy")
    if not set(_NEEDED) <= server.capabilities:
        view.refuse(
            "server",
            f"{server.backend} does not tell the tokens of its replies and their "
            "log-probabilities, without which no candidate can be ranked",
            fix="name a server that loads the policy itself: `backend: vllm` or `transformers`",
        )
    fraction, limit = view.number("fraction"), view.get("limit")
    if fraction == 1.0 and limit is None:
        view.leave("take", "every trajectory is taken without `fraction` or `limit`")
        take = "hash"
    else:
        take = view.text("take")
    config: dict[str, Json] = {
        "candidates": view.integer("candidates"),
        "decode": view.get("decode"),
        "fraction": fraction,
        "limit": limit,
        "take": take,
        "turns": view.get("turns"),
        "on_overflow": view.text("on_overflow"),
        "seed": view.integer("seed"),
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
            placement={
                "concurrency": view.integer("concurrency"),
                "error_budget": view.number("error_budget"),
            },
            inputs={"policy": stage.inputs["policy"], "rollouts": stage.inputs["rollouts"]},
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

"""What declarations of stages that record programs of others have alike: the server, which has to
tell tokens where rows are to be proved, and the job that plays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentc.backend_api import JobDraft, LeaseDraft, LowerContext, StageView
from agentc.kinds.artifacts import TRAJECTORIES
from agentc.kinds.field import Json
from agentc.kinds.interaction import RolloutSettings
from agentc_backends.agents.common.lowering import placement_of
from agentc_backends.agents.recording.settings import RecordedOptions

_TELLING = frozenset({"logprobs", "token_ids"})


def token_server(
    view: StageView, context: LowerContext, *, keeps_all: bool
) -> tuple[LeaseDraft, bool]:
    """The policy's server, and whether it tells the tokens of its replies; refused where it does
    not, unless episodes without a proof are kept."""
    server = context.server_lease(view, "model")
    tells = server.capabilities >= _TELLING
    if not tells and not keeps_all:
        view.refuse(
            "server",
            f"{server.backend} does not return the tokens of its replies, without which no row can "
            "be proved to train what was drawn",
            fix="name a server that loads the policy itself: `backend: vllm` or `transformers`",
        )
    return server, tells


def refuse_drop_oldest(view: StageView, whose: str) -> None:
    """Refuse to forget for a program what its prompts hold."""
    if view.text("on_overflow") == "drop_oldest":
        view.refuse(
            "on_overflow",
            f"what is left out of prompts is for {whose} to decide",
            fix="set it to end or error",
        )


def recorded_job(
    view: StageView,
    *,
    facts: Mapping[str, Any],
    config: Mapping[str, Json],
    identity: Mapping[str, Json],
    tells: bool,
    keeps_all: bool,
    **own: Any,
) -> JobDraft:
    """A job whose episodes a program of others plays: `own` is what a draft has of its own, `facts`
    are the environment's. `keeps_all`: episodes of which no row can be proved are rows, too."""
    return JobDraft(
        kind="rollout",
        view=view,
        config={**config, "tells": tells, "keeps_all": keeps_all},
        placement=placement_of(view, RolloutSettings) | placement_of(view, RecordedOptions),
        produces=TRAJECTORIES.name,
        extra_identity={**identity, **({"keeps_all": True} if keeps_all else {})},
        contract={"reward_range": facts["reward_range"], "network": True},
        resume=True,
        **own,
    )

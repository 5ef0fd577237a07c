"""What declarations of stages that record programs of others read alike: the server, which has to
tell tokens where rows are to be proved."""

from __future__ import annotations

from agentc.backend_api import LeaseDraft, LowerContext, StageView

_TELLING = frozenset({"logprobs", "token_ids"})


def telling_server(
    view: StageView, context: LowerContext, *, keeps_all: bool
) -> tuple[LeaseDraft, bool]:
    """The policy's server, and whether it tells the tokens of its replies; refused where it does
    not, unless episodes without a proof are kept."""
    server = context.server_lease(view, "policy")
    tells = server.capabilities >= _TELLING
    if not tells and not keeps_all:
        view.refuse(
            "server",
            f"{server.backend} does not tell the tokens of its replies, without which no row can "
            "be proved to train what was drawn",
            fix="name a server that loads the policy itself: `backend: vllm` or `transformers`",
        )
    return server, tells

"""Rules about how many tokens a server takes through its model at once.

Neighbours: `lengths.py` (what a conversation and a training row hold), `parallel.py` (devices).
"""

from __future__ import annotations

from collections.abc import Iterator

from agentc.diagnostics.codes.code import Code
from agentc.kinds.groups import LEASING
from agentc.passes.checks.leased_models import LeasedModelServer
from agentc.passes.checks.model_shape import ModelContext, model_context
from agentc.passes.checks.parallel import spreading_servers
from agentc.passes.checks.rule import Finding, Rule
from agentc.passes.checks.subject import StageContext


def prompts_within_a_pass(subject: StageContext) -> Iterator[Finding]:
    """A server that computes prompts whole takes its longest one in one pass."""
    for leased in spreading_servers(subject):
        for role in leased.models:
            yield from _within_a_pass(leased, model_context(subject, role))


def _within_a_pass(leased: LeasedModelServer, model: ModelContext | None) -> Iterator[Finding]:
    server = leased.settings
    window, shown = server.integer("max_model_len"), server.shown("max_model_len")
    if window is None and model is not None:
        window, shown = model.tokens, model.shown
    batch = server.integer("max_num_batched_tokens")
    pieces = server.get("enable_chunked_prefill")
    if pieces is None:
        pieces = bool(leased.place.integer("placement.gpus"))
    if pieces or window is None or batch is None or batch >= window:
        return
    yield Finding(
        message=f"max_num_batched_tokens is {batch}, but a prompt of {leased.whose} may have "
        f"up to {window} tokens, and is computed whole",
        path="max_num_batched_tokens",
        at=server.entry,
        notes=(
            shown,
            server.shown("enable_chunked_prefill")
            if server.given("enable_chunked_prefill")
            else "without GPUs prompts are not computed in pieces",
            "the server would refuse to start",
        ),
        fix=f"set max_num_batched_tokens to {window} or more, or leave it out",
    )


SERVER_BATCHES: tuple[Rule, ...] = (
    Rule(
        code=Code(
            "AGC659",
            "a pass of tokens shorter than a prompt",
            "A server takes `max_num_batched_tokens` tokens through its model at once. Where it "
            "does not compute prompts in pieces, the longest prompt has to fit into one pass.",
        ),
        kinds=LEASING,
        check=prompts_within_a_pass,
    ),
)

"""Rules about how many tokens a server takes through its model at once.

Neighbours: `lengths.py` (what a conversation and a training row hold), `parallel.py` (devices).
"""

from __future__ import annotations

from collections.abc import Iterator

from agentc.diagnostics.codes.code import Code
from agentc.kinds.groups import LEASING
from agentc.passes.checks.model_shape import ModelContext, model_context
from agentc.passes.checks.parallel import Shape, shapes_of
from agentc.passes.checks.rule import Finding, Rule
from agentc.passes.checks.subject import StageContext


def prompts_within_a_pass(subject: StageContext) -> Iterator[Finding]:
    """A server that computes prompts whole takes its longest one in one pass."""
    for shape in shapes_of(subject):
        for role in shape.leased.models:
            yield from _within_a_pass(shape, model_context(subject, role))


def _within_a_pass(shape: Shape, model: ModelContext | None) -> Iterator[Finding]:
    server = shape.server
    window, shown = server.integer("max_model_len"), server.shown("max_model_len")
    if window is None and model is not None:
        window, shown = model.tokens, model.shown
    batch = server.integer("max_num_batched_tokens")
    pieces = server.get("enable_chunked_prefill")
    if pieces is None:
        pieces = bool(shape.gpus)
    if pieces or window is None or batch is None or batch >= window:
        return
    yield Finding(
        message=f"max_num_batched_tokens is {batch}, but a prompt of {shape.leased.whose} may have "
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

"""Inputs that a stage has because its environment asks model servers: their models.

Part of `bind_stage.py`; `agentc.passes.lowering.asked_servers` looks at the servers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from agentc.diagnostics.sink import Sink
from agentc.diagnostics.suggest import listed
from agentc.front.expand_repeat import Unrolled
from agentc.front.stage_draft import StageDraft
from agentc.ir.module import Resource
from agentc.kinds.field import Role
from agentc.source.tree import Node, Scalar

Ids: TypeAlias = tuple[str, ...]
_Resolve: TypeAlias = Callable[[Role, Node, Unrolled], Sequence[str]]


def asked_models(
    draft: StageDraft, entry: Resource | None, resolve: _Resolve, sink: Sink
) -> dict[str, Ids]:
    """The stage whose product each server serves, by its role. `resolve` reports what a name does
    not mean; stages of one entry share its places, so what is wrong is told once."""
    inputs: dict[str, Ids] = {}
    for name in () if entry is None else entry.simulators:
        assert entry is not None
        model, span = entry.asked_model(name), entry.spans.get(f"{name}.model")
        if model is None or span is None:
            continue
        if sink.has_error_at(span):
            draft.whole = False
            continue
        role = Role(name=f"{name}.model", accepts=(), doc="")
        found = tuple(resolve(role, Scalar(model, True, span), draft.unrolled))
        draft.spans[name] = draft.spans[f"{name}.0"] = span
        if len(found) == 1:
            inputs[name] = found
        elif found:
            message = f"`{name}.model` takes one stage, not {listed(found)}"
            draft.report(sink, "AGC404", message, span)
        elif draft.whole:
            message = f"`{name}.model` is empty in this round: `{model}` carries nothing yet"
            draft.report(sink, "AGC205", message, span, fix="name a stage in `from`")
    return inputs

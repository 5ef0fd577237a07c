"""Whether a stage would still compile with other settings: what help suggests is tried before.

Neighbours: `remedies.py`, which asks; `passes/lowering/trial.py`, which lowers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from agentc.backend_api import StageBackend
from agentc.ir.module import Stage, Value
from agentc.kinds.field import Json
from agentc.passes.checks.subject import StageContext
from agentc.passes.lowering.module_context import ModuleContext
from agentc.passes.lowering.trial import attempt_lowering

_PLACEMENT = "placement."


def would_lower(subject: StageContext, backend: StageBackend, changes: Mapping[str, Json]) -> bool:
    """Whether the backend takes the stage with these settings, or complains of no more than is
    wrong with the stage as it stands."""
    stage = subject.stage
    own = subject.table.backends.get(stage.backend)
    before = _complaints(subject, own, stage) if isinstance(own, StageBackend) else frozenset()
    return _complaints(subject, backend, _changed(stage, backend, changes)) <= before


def _changed(stage: Stage, backend: StageBackend, changes: Mapping[str, Json]) -> Stage:
    options = {option.name for option in backend.options}
    placement = {
        name.removeprefix(_PLACEMENT): Value(value)
        for name, value in changes.items()
        if name.startswith(_PLACEMENT)
    }
    settings = {n: Value(v) for n, v in changes.items() if not n.startswith(_PLACEMENT)}
    return replace(
        stage,
        backend=backend.id,
        fields={**stage.fields, **{n: v for n, v in settings.items() if n not in options}},
        options={**stage.options, **{n: v for n, v in settings.items() if n in options}},
        placement={**stage.placement, **placement},
    )


def _complaints(subject: StageContext, backend: StageBackend, stage: Stage) -> frozenset[str]:
    """What the backend does not honour of the stage, by its settings' paths."""
    # Of its own each time: a context takes mappings of a module for the ones that it has seen.
    context = ModuleContext(subject.module, subject.table, subject.boundary)
    trial = attempt_lowering(stage, backend, context)
    refused = (refusal.path or refusal.reason for refusal in trial.refusals)
    failed = () if trial.failure is None else (trial.failure,)
    outside = () if trial.outside is None else (trial.outside.place,)
    return frozenset((*trial.unread, *trial.unused, *trial.untaken, *refused, *failed, *outside))

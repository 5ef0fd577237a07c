"""Declares `compare.paired` and lowers a compare stage to its one job."""

from __future__ import annotations

from agentc.backend_api import JobDraft, LowerContext, StageBackend, StageView
from agentc.kinds.artifacts import COMPARISON
from agentc.kinds.evaluation import CompareSettings
from agentc.kinds.field import Json
from agentc_backends.software import LIGHT


def lower(stage: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    """One job. Rows bear the names of the stages, which therefore belong to the key."""
    view = stage.scoped()
    compared = context.input_names(stage, "of")
    baseline = context.input_names(stage, "baseline")
    names: list[Json] = list(compared)
    baseline_name = baseline[0] if baseline else compared[0]
    facts: dict[str, Json] = {"names": names, "baseline_name": baseline_name}
    inputs = {role: stage.inputs[role] for role in ("of", "baseline") if stage.inputs.get(role)}
    return (
        JobDraft(
            kind="compare",
            backend=BACKEND.id,
            version=BACKEND.version,
            software=LIGHT,
            program=("-m", "agentc_backends.results.compare.job_compare"),
            view=view,
            config={**facts, **view.config_of(CompareSettings)},
            inputs=inputs,
            produces=COMPARISON.name,
            local=True,
            extra_identity=facts,
        ),
    )


BACKEND = StageBackend(
    id="compare.paired",
    kind="compare",
    version=4,
    doc="Differences paired by task, with interval and p-value of one test; Holm's over the rows.",
    software=LIGHT,
    lower=lower,
    capabilities=frozenset({"paired"}),
)

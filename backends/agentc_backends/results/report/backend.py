"""Declares `report.html` and lowers the report stage, which reads every other one, to its job."""

from __future__ import annotations

from agentc.backend_api import JobDraft, LowerContext, StageBackend, StageView
from agentc.kinds.artifacts import REPORT
from agentc.kinds.field import Field, Json, integer
from agentc_backends.software import LIGHT

OPTIONS: tuple[Field, ...] = (
    integer("trajectories", "At most N episodes of each stage in the page, spread evenly; "
            "the page says how many there are.", 5000, minimum=0, maximum=100_000),
)  # fmt: skip


def lower(stage: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    """One job. Its inputs bear the names of the stages as roles; what it says of the experiment
    belongs to its key."""
    view = stage.scoped()
    experiment = dict(context.experiment())
    # Mappings in plan.json are sorted by name; the page lists stages as the spec does.
    stages: list[Json] = list(stage.inputs)
    return (
        JobDraft(
            kind="report",
            backend=BACKEND.id,
            version=BACKEND.version,
            software=LIGHT,
            program=("-m", "agentc_backends.results.report.job_report"),
            view=view,
            config={
                "experiment": experiment,
                "stages": stages,
                "trajectories": view.integer("trajectories"),
                "missing": [],
            },
            inputs=dict(stage.inputs),
            produces=REPORT.name,
            local=True,
            extra_identity={"experiment": experiment, "stages": stages},
        ),
    )


BACKEND = StageBackend(
    id="report.html",
    kind="report",
    version=7,
    doc="One static HTML page: results with intervals, the graph with timings, learning curves, "
    "reward distributions, a browser for trajectories, settings and versions.",
    software=LIGHT,
    lower=lower,
    capabilities=frozenset({"html", "static", "partial"}),
    options=OPTIONS,
)

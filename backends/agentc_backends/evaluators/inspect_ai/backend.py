"""Declares `benchmark.inspect`; `common/lowering.py` makes the jobs."""

from __future__ import annotations

from collections.abc import Mapping

from agentc.backend_api import LeaseDraft, StageView
from agentc.kinds.field import Field, Json, integer, string
from agentc_backends.evaluators.common.lowering import ExternalEvaluator, benchmark_backend
from agentc_backends.software import INSPECT

OPTIONS: tuple[Field, ...] = (
    Field(
        name="params",
        schema={"type": "object"},
        doc="Values that the tasks' functions take, by their names; one that no task takes fails "
        "the stage.",
        default={},
    ),
    integer("epochs", "How often each sample is asked, each time with a seed of its own (the "
            "stage's, the next one, ...); in place of what the task says.", 1, minimum=1),
    string("system", "A system message before all others; null: as the task says.", nullable=True,
           blank=True),
)  # fmt: skip


def task_file(task: str) -> str | None:
    """A task is in a file of the user's own where it is called `sums.py` or `sums.py@name`."""
    file = task.partition("@")[0]
    return file if file.endswith(".py") else None


def _own(view: StageView, server: LeaseDraft, files: Mapping[str, str]) -> dict[str, Json]:
    return {
        "params": view.get("params"),
        "epochs": view.integer("epochs"),
        "system": view.get("system"),
    }


_EVALUATOR = ExternalEvaluator(
    id="benchmark.inspect",
    version=1,
    software=INSPECT,
    program="agentc_backends.evaluators.inspect_ai.job_inspect",
    file_of=task_file,
    form="Python, `sums.py` or `sums.py@task`",
    own=_own,
)

BACKEND = benchmark_backend(
    _EVALUATOR,
    doc="UK AISI's inspect, unmodified: tasks of Python files of one's own, or of packages by "
    "name.",
    capabilities=frozenset({"chat"}),
    options=OPTIONS,
)

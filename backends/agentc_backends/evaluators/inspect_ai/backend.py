"""Declares `benchmark.inspect`; `common/lowering.py` makes the jobs."""

from __future__ import annotations

from collections.abc import Mapping

from agentc.backend_api import LeaseDraft, StageView
from agentc.kinds.field import Json
from agentc_backends.evaluators.common.lowering import ExternalEvaluator, benchmark_backend
from agentc_backends.evaluators.inspect_ai.settings import InspectOptions
from agentc_backends.software import INSPECT


def task_file(task: str) -> str | None:
    """A task is in a file of the user's own where it is called `sums.py` or `sums.py@name`."""
    file = task.partition("@")[0]
    return file if file.endswith(".py") else None


def _no_settings(view: StageView, server: LeaseDraft, files: Mapping[str, str]) -> dict[str, Json]:
    return {}


_EVALUATOR = ExternalEvaluator(
    id="benchmark.inspect",
    version=1,
    software=INSPECT,
    program="agentc_backends.evaluators.inspect_ai.job_inspect",
    file_of=task_file,
    form="Python, `sums.py` or `sums.py@task`",
    options=InspectOptions,
    own=_no_settings,
)

BACKEND = benchmark_backend(
    _EVALUATOR,
    doc="UK AISI's inspect, unmodified: tasks of custom Python files, or of packages by name.",
    capabilities=frozenset({"chat"}),
)

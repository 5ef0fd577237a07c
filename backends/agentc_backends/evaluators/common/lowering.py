"""A benchmark stage as two jobs: the evaluator's, in software of its own, which gives a score of
every sample, and one that makes metrics of them, so that another `confidence` asks no model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from agentc.backend_api import (
    JobDraft,
    LeaseDraft,
    LowerContext,
    Software,
    StageBackend,
    StageView,
)
from agentc.kinds.artifacts import METRICS, TASK_SCORES
from agentc.kinds.evaluation import BenchmarkDecode, BenchmarkRun
from agentc.kinds.field import Json
from agentc.kinds.settings import fields_of
from agentc_backends.software import LIGHT
from agentc_backends.user_files.files import (
    file_entries,
    listed_names,
    place_in_folder,
    read_texts,
    score_range,
)

_PART = "scores"
_FILES = frozenset({".py", ".ipynb", ".yaml", ".yml", ".json", ".jsonl"})
"""No evaluator has names of tasks that end so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalEvaluator:
    """What one evaluator has of its own. `file_of` says which file of the user's a task is in, None
    where it is a name that the evaluator knows, and `form` how such files are. `options` are the
    backend's own settings; `own` checks them, given the server and the texts of the files, and
    returns what else the program reads."""

    id: str
    version: int
    software: Software
    program: str
    file_of: Callable[[str], str | None]
    form: str
    options: type
    own: Callable[[StageView, LeaseDraft, Mapping[str, str]], dict[str, Json]]


def benchmark_backend(
    evaluator: ExternalEvaluator,
    *,
    doc: str,
    capabilities: frozenset[str],
) -> StageBackend:
    """The backend by which stages of kind `benchmark` have an evaluator run."""

    def lower(view: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
        return benchmark_jobs(view, context, evaluator)

    return StageBackend(
        id=evaluator.id,
        kind="benchmark",
        version=evaluator.version,
        doc=doc,
        software=evaluator.software,
        lower=lower,
        capabilities=capabilities,
        options=fields_of(evaluator.options),
    )


def benchmark_jobs(
    view: StageView, context: LowerContext, evaluator: ExternalEvaluator
) -> tuple[JobDraft, ...]:
    """The evaluator's job and that of its metrics."""
    own = view.scoped()
    server = context.server_lease(own, "model")
    tasks = listed_names(own, "tasks")
    if not tasks:
        own.refuse("tasks", f"{evaluator.id} needs a task", fix="name one, or your own file")
    by_task = {task: evaluator.file_of(task) for task in tasks}
    for task, file in by_task.items():
        if file is None and PurePosixPath(task.partition("@")[0]).suffix in _FILES:
            # So that `backend: auto` takes the evaluator whose file it is.
            own.refuse("tasks", f"its files of tasks are {evaluator.form}, and {task} is none")
    named = [("tasks", file) for file in by_task.values() if file is not None]
    named += [("sources", name) for name in listed_names(own, "sources")]
    files = dict(read_texts(own, dict.fromkeys(named)))
    network = own.flag("network")
    config: dict[str, Json] = {
        "tasks": [_placed(task, file) for task, file in by_task.items()],
        "files": file_entries(files),
        **own.config_of(BenchmarkRun),
        **own.config_of(BenchmarkDecode, at="decode"),
        **own.config_of(evaluator.options),
        **evaluator.own(own, server, files),
    }
    scoring = JobDraft(
        name=_PART,
        kind="benchmark",
        backend=evaluator.id,
        version=evaluator.version,
        software=evaluator.software,
        program=("-m", evaluator.program),
        view=own,
        config=config,
        placement={"concurrency": own.integer("concurrency")},
        inputs={"model": view.inputs["model"]},
        produces=TASK_SCORES.name,
        leases=(server,),
        extra_identity={"files": {name: context.digest_of(name) for name in files}},
        contract={**({"network": True} if network else {}), "reward_range": score_range(own)},
    )
    return (scoring, _measuring(view, evaluator))


def _placed(task: str, file: str | None) -> str:
    """The task as it is called in the folder that the evaluator starts in."""
    return task if file is None else place_in_folder(file) + task.removeprefix(file)


def _measuring(view: StageView, evaluator: ExternalEvaluator) -> JobDraft:
    own = view.scoped()
    return JobDraft(
        kind="benchmark",
        backend=evaluator.id,
        version=evaluator.version,
        software=LIGHT,
        program=("-m", "agentc_backends.evaluators.common.job_metrics"),
        view=own,
        config={"confidence": own.number("confidence"), "range": score_range(own)},
        inputs={"scores": (f":{_PART}",)},
        produces=METRICS.name,
        local=True,
    )

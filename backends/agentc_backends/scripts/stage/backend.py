"""Declares `script.run` and lowers a script stage: the job that runs it, with the text of its files
in the plan, and, where it makes metrics, one that makes them of its scores."""

from __future__ import annotations

from pathlib import PurePosixPath

from agentc.backend_api import JobDraft, LowerContext, StageBackend, StageView
from agentc.kinds.artifacts import METRICS, TASK_SCORES
from agentc.kinds.field import Json
from agentc.kinds.script import PRODUCTS
from agentc_backends.software import LIGHT
from agentc_backends.user_files.files import (
    file_entries,
    program_files,
    program_software,
    program_words,
    score_range,
    script_header,
)

_PART = "scores"
_MODULE = "agentc_backends.scripts.stage"


def lower(view: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    """One job; two for `output: metrics`, whose second one computes means and intervals."""
    product = PRODUCTS[view.text("output")]
    metrics = product is METRICS
    for name in () if metrics else ("confidence", "range"):
        view.leave(name, "only `output: metrics` has scores")
    words, main = program_words(view, BACKEND.id)
    files = dict(program_files(view, main))
    header = script_header(view, files.get(main or "", ""), main)
    given = view.get("params")
    own = view.scoped() if metrics else view
    for name in ("output", "run", "command", "sources", "params", "requirements"):
        own.get(name)
    network = own.flag("network")
    config: dict[str, Json] = {
        "words": [*words],
        "python": main is not None,
        "files": file_entries(files),
        "params": header.merged_params(given if isinstance(given, dict) else {}),
        "output": (TASK_SCORES if metrics else product).name,
        "seed": own.integer("seed"),
        "network": network,
    }
    running = JobDraft(
        name=_PART if metrics else "",
        kind="script",
        backend=BACKEND.id,
        version=BACKEND.version,
        software=program_software(view),
        program=("-m", f"{_MODULE}.job_script"),
        view=own,
        config=config,
        inputs=view.inputs,
        produces=(TASK_SCORES if metrics else product).name,
        extra_identity={"files": {name: context.digest_of(name) for name in files}},
        contract={
            **({"network": True} if network else {}),
            **({"reward_range": score_range(own)} if metrics else {}),
        },
    )
    return (running, _measuring(view, main)) if metrics else (running,)


def _measuring(view: StageView, main: str | None) -> JobDraft:
    own = view.scoped()
    return JobDraft(
        kind="script",
        backend=BACKEND.id,
        version=BACKEND.version,
        software=LIGHT,
        program=("-m", f"{_MODULE}.job_metrics"),
        view=own,
        config={
            "confidence": own.number("confidence"),
            "range": score_range(own),
            "name": PurePosixPath(main or "script").stem,
        },
        inputs={"scores": (f":{_PART}",)},
        produces=METRICS.name,
        local=True,
        extra_identity={"measured_by": PurePosixPath(main or "script").stem},
    )


BACKEND = StageBackend(
    id="script.run",
    kind="script",
    version=1,
    doc="Runs a Python file or a command of the user's own in a folder that holds nothing but its "
    "declared files, without a network unless the stage requests one.",
    software=LIGHT,
    lower=lower,
    capabilities=frozenset({"offline"}),
)

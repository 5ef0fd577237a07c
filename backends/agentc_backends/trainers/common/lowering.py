"""What every trainer's backend reads alike: how a step's rows are shared out, the schedule of the
learning rate, and which tokens are trained. Used while lowering; imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Mapping

from agentc.backend_api import JobDraft, StageBackend, StageView
from agentc.kinds.artifacts import CHECKPOINT, ArtifactType
from agentc.kinds.field import Json
from agentc_backends.trainers.common.zero import STAGES


def training_job(
    view: StageView,
    backend: StageBackend,
    config: Mapping[str, Json],
    extra_identity: Mapping[str, Json] | None = None,
    produces: ArtifactType = CHECKPOINT,
) -> JobDraft:
    """The one job of a training stage: the program `job_kind` of the backend `library.kind`."""
    library, kind = backend.id.split(".")
    processes = view.integer("processes")
    # What few plans have is left out of the others.
    on_empty = view.text("on_empty")
    config = config if on_empty == "error" else {**config, "on_empty": on_empty}
    return JobDraft(
        kind=kind,
        backend=backend.id,
        version=backend.version,
        software=backend.software,
        program=("-m", f"agentc_backends.trainers.{library}.job_{kind}"),
        view=view,
        config=config,
        inputs=view.inputs,
        produces=produces.name,
        placement={"processes": processes, **_layout(view)},
        processes=processes,
        extra_identity=extra_identity or {},
    )


_LAYOUT: dict[str, Json] = {"sharding": "none", "offload": False, "attention": "auto"}
"""Settings that say how a model lies in memory, and what they are where the placement of a job does
not name them."""


def _layout(view: StageView) -> dict[str, Json]:
    """What a job's placement says of the memory of its model."""
    found = {name: view.get(name) for name in _LAYOUT}
    if found["attention"] == "flash" and view.text("dtype") == "float32":
        view.refuse(
            "attention",
            "flash attention computes in types of 16 bits",
            fix="set dtype: bfloat16, or attention: sdpa",
        )
    return {name: value for name, value in found.items() if value != _LAYOUT[name]}


def zero_stage(view: StageView) -> tuple[Json, bool]:
    """(stage of DeepSpeed's ZeRO, whether `sharding` says it and not the option `zero_stage`)."""
    given = view.get("zero_stage")
    stage = STAGES.get(view.text("sharding"))
    if stage is None:
        return given, False
    if view.is_set("zero_stage") and given != stage:
        view.refuse(
            "zero_stage",
            f"sharding: {view.text('sharding')} is stage {stage}",
            fix="leave zero_stage out",
        )
    return stage, True


def micro_batches(view: StageView, default: int | None) -> tuple[int, int]:
    """(rows that a process handles at once, such micro-batches in a step).

    `default` is the size where the spec is silent, None for all rows of a process. Refuses what
    does not divide, which some trainers would round down in silence; the answer is (1, 1) then.
    """
    whole = view.integer("global_batch")
    processes = view.integer("processes")
    given = view.get("micro_batch")
    if whole % processes:
        view.refuse(
            "processes",
            f"{processes} processes cannot share a global_batch of {whole} equally",
            fix=f"set processes to a divisor of {whole}: {_divisors(whole)}",
        )
        return 1, 1
    local = whole // processes
    micro = given if isinstance(given, int) else default or local
    if local % micro:
        view.refuse(
            "micro_batch",
            f"{micro} does not divide the {local} rows that each process takes of a step "
            f"(global_batch {whole} / processes {processes})",
            fix=f"set micro_batch to a divisor of {local}: {_divisors(local)}",
        )
        return 1, 1
    return micro, local // micro


def warmed_schedule(view: StageView) -> tuple[str, float]:
    """(scheduler, share of the steps that warm up); refuses what no trainer would heed."""
    scheduler = view.text("scheduler")
    ratio = view.number("warmup_ratio")
    if ratio and scheduler == "constant":
        view.refuse(
            "warmup_ratio",
            "the scheduler `constant` has no warm-up",
            fix="set scheduler: constant_with_warmup",
        )
    if ratio >= 1:
        # From 1 on, transformers reads the number as a count of steps.
        view.refuse("warmup_ratio", "must be below 1", fix="set a share such as 0.1")
    return scheduler, ratio


def row_choice(view: StageView) -> dict[str, Json]:
    """Which rows are imitated."""
    # What few plans have is left out of the others.
    wanted = {name: view.get(name) for name in ("keep_best", "best_per_task")}
    more = {name: value for name, value in wanted.items() if value is not None}
    return {"min_reward": view.get("min_reward"), **more}


def token_mask(view: StageView, loss_on: str) -> dict[str, Json]:
    """Which tokens are trained, and what becomes of rows that are too long."""
    mask: dict[str, Json] = {
        "loss_on": loss_on,
        "max_length": view.integer("max_length"),
        "truncation": view.text("truncation"),
    }
    if mask["truncation"] != "error":
        view.leave("max_dropped", f"`truncation: {mask['truncation']}` has no limit")
    elif view.is_set("max_dropped"):
        # What few plans have is left out of the others.
        mask["max_dropped"] = view.number("max_dropped")
    return mask


def leave_nll(view: StageView) -> None:
    """The settings of a likelihood term that is not there."""
    for name in ("nll_on", "nll_reduction"):
        view.leave(name, "no likelihood is added without `nll_weight`")


def _divisors(number: int) -> str:
    return ", ".join(str(each) for each in range(1, number + 1) if number % each == 0)

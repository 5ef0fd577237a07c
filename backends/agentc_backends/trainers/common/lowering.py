"""What all trainers' backends read in the same way: the rows of a step and of a process, the
schedule of the learning rate, the tokens that are trained, and the memory of a training. Used
during lowering; imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Mapping

from agentc.backend_api import JobDraft, StageBackend, StageView
from agentc.backend_api.memory import ALWAYS, TRAINING, Held, MemoryQuestion, Moment
from agentc.kinds.artifacts import CHECKPOINT, ArtifactType
from agentc.kinds.field import Json
from agentc.kinds.training import EmptyInput, RowLimits

STAGES: dict[str, int] = {"optimizer": 2, "full": 3}
"""Stages of DeepSpeed's ZeRO by `sharding`; without it the option `zero_stage` decides."""
_STEP: frozenset[Moment] = frozenset({"step"})
_STEP_GPU, _STEP_CPU = 8, 12
"""Bytes of a weight in the optimiser's step: float32 gradients and the roots of the second moments,
without a GPU also their corrected values, all for the whole share at once."""


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
    return JobDraft(
        kind=kind,
        backend=backend.id,
        version=backend.version,
        software=backend.software,
        program=("-m", f"agentc_backends.trainers.{library}.job_{kind}"),
        view=view,
        config={**config, **view.config_of(EmptyInput)},
        inputs=view.inputs,
        produces=produces.name,
        placement={"processes": processes, **_layout(view)},
        processes=processes,
        extra_identity=extra_identity or {},
    )


_LAYOUT: dict[str, Json] = {"sharding": "none", "offload": False, "attention": "auto"}
"""Settings of a model's place in memory, with the values that a job's placement leaves out."""


def _layout(view: StageView) -> dict[str, Json]:
    """The part of a job's placement about the memory of its model."""
    layout = {name: view.get(name) for name in _LAYOUT}
    if layout["attention"] == "flash" and view.text("dtype") == "float32":
        view.refuse(
            "attention",
            "flash attention computes in types of 16 bits",
            fix="set dtype: bfloat16, or attention: sdpa",
        )
    return {name: value for name, value in layout.items() if value != _LAYOUT[name]}


def zero_stage(view: StageView) -> tuple[Json, bool]:
    """(stage of DeepSpeed's ZeRO, whether it is that of `sharding` and not of `zero_stage`)."""
    option = view.get("zero_stage")
    stage = STAGES.get(view.text("sharding"))
    if stage is None:
        return option, False
    if view.is_set("zero_stage") and option != stage:
        view.refuse(
            "zero_stage",
            f"sharding: {view.text('sharding')} is stage {stage}",
            fix="leave zero_stage out",
        )
    return stage, True


def micro_batches(view: StageView, default: int | None) -> tuple[int, int]:
    """(rows in a micro-batch of a process, micro-batches of a process in a step).

    `default` is the size where the spec has none, None for all rows of a process. Refuses numbers
    that do not divide, which some trainers would silently round down; the result is (1, 1) then.
    """
    whole = view.integer("global_batch")
    processes = view.integer("processes")
    size = view.get("micro_batch")
    if whole % processes:
        view.refuse(
            "processes",
            f"{processes} processes cannot share a global_batch of {whole} equally",
            fix=f"set processes to a divisor of {whole}: {_divisors(whole)}",
        )
        return 1, 1
    local = whole // processes
    micro = size if isinstance(size, int) else default or local
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
    """(scheduler, share of the steps for warm-up); refuses what no trainer supports."""
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


def token_mask(view: StageView, loss_on: str) -> dict[str, Json]:
    """Which tokens are trained, and what is done with rows that are too long."""
    truncation = view.text("truncation")
    limited = truncation == "error"
    without = {} if limited else {"max_dropped": f"`truncation: {truncation}` has no limit"}
    limits = view.config_of(RowLimits, without=without)
    if not view.is_set("max_dropped"):
        # A setting that few plans have is left out of the others.
        limits.pop("max_dropped", None)
    return {"loss_on": loss_on, **limits}


def _divisors(number: int) -> str:
    return ", ".join(str(each) for each in range(1, number + 1) if number % each == 0)


def rows_at_once(question: MemoryQuestion, default: int | None) -> tuple[int, bool]:
    """(rows in a micro-batch of a process, whether a step has several micro-batches); `default` is
    the size where the spec has none, None for all rows of a process."""
    whole = max(1, question.integer("global_batch", 1) // training_processes(question))
    size = question.integer("micro_batch", default or whole)
    return min(size, whole), size < whole


def training_processes(question: MemoryQuestion) -> int:
    """The number of training processes."""
    return max(1, question.integer("processes", 1))


def gradients_at(accumulates: bool) -> frozenset[Moment]:
    """When memory holds gradients. With accumulation those of earlier micro-batches are there while
    the next one is computed; after a step they are freed."""
    return TRAINING - {"save"} if accumulates else TRAINING - {"loss", "save"}


def adapter_weights(question: MemoryQuestion) -> int:
    """The number of weights of the low-rank adapters, 0 where all weights are trained."""
    if question.get("lora") is None:
        return 0
    targets = question.get("lora.targets")
    names = tuple(map(str, targets)) if isinstance(targets, (list, tuple)) else ()
    # Adapters on unknown modules are counted as if on all modules.
    count = question.model.adapters(question.integer("lora.rank", 8), names)
    return count or question.model.adapters(question.integer("lora.rank", 8))


def stage_in(question: MemoryQuestion) -> Json:
    """The stage of ZeRO; None without DeepSpeed."""
    return STAGES.get(question.text("sharding", "none")) or question.get("zero_stage")


def zero_held(question: MemoryQuestion, stage: int, weights: int) -> tuple[Held, ...]:
    """What ZeRO keeps: weights of `weights` bytes each, gradients of the same width, and float32
    copies and both moments of what is trained. The processes share the copies from stage 1 on, the
    gradients from 2 on, the weights with 3. A step needs more for its share. With `offload` copies
    and moments are in main memory, where the step is computed."""
    step, away = _STEP_GPU if question.gpus else _STEP_CPU, question.flag("offload")
    return (
        Held(name="weights", width=weights, split=stage == 3, at=ALWAYS),
        Held(name="float32 copies", width=4, of="trained", split=True, at=ALWAYS, offloaded=away),
        Held(name="Adam", width=8, of="trained", split=True, offloaded=away),
        Held(
            name="gradients", width=weights, of="trained", split=stage >= 2, at=TRAINING - {"save"}
        ),
        Held(
            name="the step's copies", width=step, of="trained", split=True, at=_STEP, offloaded=away
        ),
    )

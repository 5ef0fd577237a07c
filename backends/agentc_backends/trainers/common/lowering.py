"""What every trainer's backend reads alike: how a step's rows are shared out, the schedule of the
learning rate, and which tokens are trained. Used while lowering; imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Mapping

from agentc.backend_api import JobDraft, StageBackend, StageView
from agentc.backend_api.memory import ALWAYS, TRAINING, Held, MemoryQuestion, Moment
from agentc.kinds.artifacts import CHECKPOINT, ArtifactType
from agentc.kinds.field import Json


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


def rows_at_once(question: MemoryQuestion, default: int | None) -> tuple[int, bool]:
    """(rows that a process takes at once, whether a step has several such micro-batches);
    `default` is the size where the spec is silent, None for all rows of a process."""
    whole = max(1, question.integer("global_batch", 1) // training_processes(question))
    size = question.integer("micro_batch", default or whole)
    return min(size, whole), size < whole


def training_processes(question: MemoryQuestion) -> int:
    """How many train together."""
    return max(1, question.integer("processes", 1))


def gradients_at(accumulates: bool) -> frozenset[Moment]:
    """When gradients are there: those of the micro-batches before lie there while the next one is
    computed; after a step they are gone."""
    return TRAINING - {"save"} if accumulates else TRAINING - {"loss", "save"}


def adapter_weights(question: MemoryQuestion) -> int:
    """Weights of the low-rank adapters, 0 where all weights are trained."""
    if question.get("lora") is None:
        return 0
    targets = question.get("lora.targets")
    names = tuple(map(str, targets)) if isinstance(targets, (list, tuple)) else ()
    # Adapters on modules that are not known here are counted as if on all.
    count = question.model.adapters(question.integer("lora.rank", 8), names)
    return count or question.model.adapters(question.integer("lora.rank", 8))


STAGES: dict[str, int] = {"optimizer": 2, "full": 3}
"""Stages by what `sharding` says; without it the option `zero_stage` decides."""

_STEP: frozenset[Moment] = frozenset({"step"})
_OWN_GPU, _OWN_CPU = 8, 12
"""Float32 gradients, and the roots of the second moments; without a GPU also what they become when
they are corrected, each for all of the share at once."""


def stage_in(question: MemoryQuestion) -> Json:
    """The stage of a training whose memory is asked for; None without DeepSpeed."""
    return STAGES.get(question.text("sharding", "none")) or question.get("zero_stage")


def zero_held(question: MemoryQuestion, stage: int, weights: int) -> tuple[Held, ...]:
    """Weights of so many bytes each, float32 copies of those that are trained with both moments,
    and gradients as wide as the weights. From stage 1 on the processes share the copies, from 2
    the gradients, with 3 the weights. A step makes more of its share. With `offload` copies and
    moments lie in main memory, where the step is done."""
    own, away = _OWN_GPU if question.gpus else _OWN_CPU, question.flag("offload")
    return (
        Held(name="weights", width=weights, split=stage == 3, at=ALWAYS),
        Held(name="float32 copies", width=4, of="trained", split=True, at=ALWAYS, offloaded=away),
        Held(name="Adam", width=8, of="trained", split=True, offloaded=away),
        Held(
            name="gradients", width=weights, of="trained", split=stage >= 2, at=TRAINING - {"save"}
        ),
        Held(
            name="the step's copies", width=own, of="trained", split=True, at=_STEP, offloaded=away
        ),
    )

"""One training by a TRL trainer: the arguments that depend on the machine, resuming, training, and
the finished checkpoint with its scored rows."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentc.kinds.training import LoraSettings
from agentc.program.job import Job
from agentc_backends.data.chat.rows import RowCounts, Side
from agentc_backends.data.chat.tokens import Encoder
from agentc_backends.data.models.checkpoint import companion_files, load_model, require_lora_targets
from agentc_backends.data.models.scored_rows import ScoredRows, write_scored_rows
from agentc_backends.job_device import job_device
from agentc_backends.trainers.common.checkpoints import newest_complete, save_as, save_dtype_of
from agentc_backends.trainers.common.processes import decide_on_first, first_process, process_count
from agentc_backends.trainers.common.program import record_facts
from agentc_backends.trainers.common.rows import StepSampler, empty_rows, step_totals
from agentc_backends.trainers.common.scoring import ScoringSample, score_rows
from agentc_backends.trainers.trl.sharding import (
    ModelLayout,
    empty_model,
    load_with_layout,
    read_layout,
    release_gathered,
    sharding_facts,
    whole_weights,
)

_PACKAGES = ("torch", "transformers", "trl", "peft", "accelerate")
"""The packages whose versions are facts."""

CHECKPOINTS = "checkpoint-"
"""The prefix of transformers' checkpoint folders, before the number of the step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrlSettings:
    """What all three jobs read: `arguments` are those of TRL's configuration class."""

    arguments: Mapping[str, Any]
    lora: LoraSettings | None
    save_dtype: str = "auto"


def train_with(
    job: Job,
    encoder: Encoder,
    counts: RowCounts,
    arguments_class: Callable[..., Any],
    trainer_class: Callable[..., Any],
    columns: Callable[[int], dict[str, list[Any]]],
    lengths: Sequence[int],
    tokens: Sequence[int],
    sample: ScoringSample,
    *,
    trained: Callable[[Any], None] | None = None,
    facts: Mapping[str, int] | None = None,
) -> None:
    """Train and write the checkpoint with scores of `sample`. Rows are batched by `lengths`, and
    the log counts `tokens`. `columns` makes the data set with a number of empty rows at its end;
    `trained` is called with the trainer before anything is saved. Raises TrainingDivergedError,
    OutOfTimeError."""
    from datasets import Dataset
    from transformers.trainer_utils import set_seed

    from agentc_backends.trainers.trl.trainer_base import Reporter

    settings, base = job.config.read_as(TrlSettings), job.input("model")
    job.config.assert_all_read()
    layout, lora = read_layout(job), settings.lora
    require_lora_targets(base, () if lora is None else lora.targets)
    args = arguments_class(**settings.arguments, **_machine_arguments(job, layout))
    adapters = None if lora is None else _lora_config(lora)
    multiple = args.per_device_train_batch_size * process_count()
    global_batch = multiple * args.gradient_accumulation_steps
    totals = step_totals(tokens, global_batch=global_batch, seed=args.seed)
    set_seed(args.seed)
    trainer = trainer_class(
        model=load_with_layout(base, layout),
        layout=layout,
        args=args,
        train_dataset=Dataset.from_dict(columns(empty_rows(len(lengths), multiple))),
        processing_class=encoder.tokenizer,
        peft_config=adapters,
        callbacks=[Reporter(job, totals)],
        sampler=StepSampler(lengths, global_batch=global_batch, multiple=multiple, seed=args.seed),
    )
    _fit(trainer, job)
    if trained is not None:
        trained(trainer)
    more = {**(facts or {}), **sharding_facts(trainer.model, layout)}
    scored = _score(trainer, layout, sample)
    dtype = save_dtype_of(settings.save_dtype, "float32")
    _save_checkpoint(trainer, job, base, layout, adapters, dtype)
    if first_process():
        write_scored_rows(job.out, scored)
    record_facts(job, counts, trainer.state.global_step, _PACKAGES, **more)


def _machine_arguments(job: Job, layout: ModelLayout) -> dict[str, Any]:
    """The arguments that depend on the machine: the folder, CPU or GPU, and sharding."""
    arguments: dict[str, Any] = {"output_dir": str(job.work)}
    if layout.sharded:
        # Shard gradients in each micro-batch: else each process holds all of them until the step's
        # end.
        accumulation = {"sync_each_batch": True}
        arguments["accelerator_config"] = {"gradient_accumulation_kwargs": accumulation}
    if job_device(job).type == "cpu":
        arguments |= {"use_cpu": True, "dataloader_pin_memory": False}
        if process_count() > 1:
            arguments["ddp_backend"] = "gloo"
    elif layout.sharded and process_count() > 1:
        # Shards in main memory are summed there.
        arguments["ddp_backend"] = "cuda:nccl,cpu:gloo"
    return arguments


def _lora_config(lora: LoraSettings) -> Any:
    from peft import LoraConfig

    return LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules=list(lora.targets) or "all-linear",
        task_type="CAUSAL_LM",
    )


def _fit(trainer: Any, job: Job) -> None:
    """Train, from the newest complete checkpoint in the job's work folder if there is one. Raises
    OutOfTimeError."""
    from transformers.trainer_callback import PrinterCallback

    from agentc_backends.trainers.trl.trainer_base import StopInTime

    # Progress goes to progress.json and logs/steps.jsonl instead of the standard output.
    trainer.remove_callback(PrinterCallback)
    # Only one process decides, for it also deletes incomplete checkpoints.
    resume = decide_on_first(lambda: newest_complete(job.work, f"{CHECKPOINTS}*"))
    limit = StopInTime(job)
    trainer.add_callback(limit)
    trainer.train(resume_from_checkpoint=None if resume is None else str(resume))
    limit.assert_not_stopped(trainer.state)


def _score(trainer: Any, layout: ModelLayout, sample: ScoringSample) -> ScoredRows:
    """The trained model's log-probabilities of some rows, computed as its loss was. Every process
    must call it."""
    import torch

    model, accelerator = trainer.model, trainer.accelerator

    def log_probs(side: Side) -> list[float]:
        ids, labels = (
            torch.tensor([row], device=accelerator.device) for row in (side.ids, side.labels())
        )
        with torch.no_grad(), accelerator.autocast():
            # TRL's own forward pass, which never has the logits of a whole row.
            output = model(input_ids=ids, labels=labels, fused_lm_head=True).log_probs
        values: list[float] = output[0].float().tolist()
        return values

    model.eval()
    scored = score_rows(sample, "bfloat16" if trainer.args.bf16 else "float32", log_probs)
    if layout.sharded:
        release_gathered(model)
    return scored


def _save_checkpoint(
    trainer: Any, job: Job, base: Path, layout: ModelLayout, lora: Any, dtype: str
) -> None:
    """Write the finished model into `job.out`: adapters merged, safetensors of type `dtype`, with
    the tokenizer, template and formats of the model that training started from. Every process must
    call it."""
    model = _whole_model(trainer, base, layout, lora, dtype)
    if model is None:
        return
    if hasattr(model, "merge_and_unload"):
        model = model.merge_and_unload()
    save_as(model, job.out, dtype)
    for path in companion_files(base):
        shutil.copyfile(path, job.out / path.name)


def _whole_model(trainer: Any, base: Path, layout: ModelLayout, lora: Any, dtype: str) -> Any:
    """The trained model, on the first process only; a sharded one is gathered in `dtype`."""
    trained = trainer.accelerator.unwrap_model(trainer.model)
    if not layout.sharded:
        return trained if first_process() else None
    weights = whole_weights(trained, dtype) if lora is None else {}
    if not first_process():
        return None
    if lora is None:
        model = empty_model(base, layout.attention)
        model.load_state_dict(weights, assign=True)
        model.tie_weights()
    else:
        model = _with_adapters(load_model(base, layout.attention), lora, trained)
    # As training without sharding leaves it.
    model.config.use_cache = trained.config.use_cache
    return model


def _with_adapters(model: Any, lora: Any, trained: Any) -> Any:
    """A whole model with the adapters of a sharded one, which are never sharded."""
    from peft import get_peft_model, get_peft_model_state_dict, set_peft_model_state_dict

    adapters = get_peft_model_state_dict(trained)
    model = get_peft_model(model, lora)
    set_peft_model_state_dict(model, {name: weight.cpu() for name, weight in adapters.items()})
    return model

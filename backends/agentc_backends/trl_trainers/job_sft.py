"""Job of trl.sft: TRL's SFTTrainer on token rows whose labels are already made."""

from __future__ import annotations

from typing import Any

from agentc.runtime.program import Job
from agentc_backends.chat.rows import MaskRules, RowsError, encode_rows
from agentc_backends.chat.tokens import load_encoder
from agentc_backends.models.checkpoint import load_model
from agentc_backends.trl_trainers.order import StepSampler, empty_rows, step_totals
from agentc_backends.trl_trainers.session import (
    fit,
    input_rows,
    lora_config,
    machine_arguments,
    process_count,
    record_facts,
    run_trainer,
    save_checkpoint,
)


def train(job: Job) -> None:
    """Fine-tune the model of the job and write its checkpoint. Raises RowsError, FormatError,
    TrainingDivergedError."""
    config = job.config
    mask = config["mask"]
    rows, left_out = select_rows(
        input_rows(job.inputs("data"), ("trajectories.jsonl", "rows.jsonl")), config["min_reward"]
    )
    base = job.input("model")
    encoder = load_encoder(base)
    sides, counts = encode_rows(encoder, rows, MaskRules(**mask))

    from datasets import Dataset
    from transformers.trainer_utils import set_seed
    from trl import SFTConfig

    from agentc_backends.trl_trainers.reporting import Reporter
    from agentc_backends.trl_trainers.trainers import RowTrainer

    args = SFTConfig(**config["arguments"], **machine_arguments(job))
    lora = lora_config(config["lora"])
    config.assert_all_read()
    multiple = args.per_device_train_batch_size * process_count()
    empty = empty_rows(len(sides), multiple)
    pad = encoder.pad
    columns: dict[str, list[Any]] = {
        "input_ids": [side.ids for side in sides] + [[pad]] * empty,
        "labels": [side.labels() for side in sides] + [[-100]] * empty,
    }
    global_batch = multiple * args.gradient_accumulation_steps
    tokens = step_totals(
        [len(side.ids) for side in sides],
        global_batch=global_batch,
        seed=args.seed,
    )
    set_seed(args.seed)
    trainer = RowTrainer(
        model=load_model(base),
        args=args,
        train_dataset=Dataset.from_dict(columns),
        processing_class=encoder.tokenizer,
        peft_config=lora,
        callbacks=[Reporter(job, tokens)],
        sampler=StepSampler(
            [len(side.ids) for side in sides],
            global_batch=global_batch,
            multiple=multiple,
            seed=args.seed,
        ),
    )
    fit(trainer, job)
    save_checkpoint(trainer, job, base)
    record_facts(job, counts, trainer.state.global_step, **left_out)


def select_rows(
    rows: list[dict[str, Any]], min_reward: float | None
) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """The rows to imitate and how many were left out: episodes that ended in an infrastructure
    error always, rows below `min_reward` (or without a reward) when it is given."""
    whole = [row for row in rows if row.get("end") != "error"]
    kept = whole
    if min_reward is not None:
        kept = [row for row in whole if _reaches(row, min_reward)]
    if rows and not kept:
        raise RowsError(_why_none(rows, whole, min_reward))
    return kept, {
        "errors_left_out": len(rows) - len(whole),
        "below_min_reward": len(whole) - len(kept),
    }


def _reaches(row: dict[str, Any], min_reward: float) -> bool:
    reward = row.get("reward")
    return reward is not None and reward >= min_reward


def _why_none(
    rows: list[dict[str, Any]], whole: list[dict[str, Any]], min_reward: float | None
) -> str:
    """Why not one row is left to imitate, and what to do."""
    failed = len(rows) - len(whole)
    if not whole:
        return (
            "no rows to train on: every trajectory ended in an infrastructure error "
            f"({failed} of {failed}); its row says which in `error`"
        )
    rewards = [row["reward"] for row in whole if row.get("reward") is not None]
    best = f"best: {max(rewards):g}" if rewards else "none has a reward"
    more = f"; {failed} more ended in an infrastructure error" if failed else ""
    of = "the one trajectory does not reach"
    if len(whole) > 1:
        of = f"none of {len(whole)} trajectories reaches"
    return (
        f"no rows to train on: {of} min_reward {min_reward:g} ({best}){more}; lower it, or sample "
        "more"
    )


if __name__ == "__main__":
    raise SystemExit(run_trainer("trl.sft", "agentc_backends.trl_trainers.job_sft", train))

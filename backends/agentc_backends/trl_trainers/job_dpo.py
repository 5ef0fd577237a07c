"""Job of trl.dpo: TRL's DPOTrainer on pairs of token rows whose masks are already made."""

from __future__ import annotations

from typing import Any

from agentc.runtime.program import Job
from agentc_backends.chat.rows import MaskRules, Side, encode_pairs
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
    """Optimise the policy of the job on its pairs and write its checkpoint. Raises RowsError,
    FormatError, TrainingDivergedError."""
    config = job.config
    rows = input_rows(job.inputs("data"), ("pairs.jsonl",))
    base = job.input("model")
    references = [path for path in job.inputs("reference") if path != base]
    encoder = load_encoder(base)
    pairs, counts = encode_pairs(encoder, rows, MaskRules(**config["mask"]))

    from datasets import Dataset
    from transformers.trainer_utils import set_seed
    from trl import DPOConfig

    from agentc_backends.trl_trainers.reporting import Reporter
    from agentc_backends.trl_trainers.trainers import PairCollator, PairTrainer

    args = DPOConfig(**config["arguments"], **machine_arguments(job))
    lora = lora_config(config["lora"])
    config.assert_all_read()
    multiple = args.per_device_train_batch_size * process_count()
    pad = encoder.pad
    columns = pair_columns(pairs, empty_rows(len(pairs), multiple), pad)
    global_batch = multiple * args.gradient_accumulation_steps
    tokens = step_totals(
        [len(chosen.ids) + len(rejected.ids) for chosen, rejected in pairs],
        global_batch=global_batch,
        seed=args.seed,
    )
    set_seed(args.seed)
    trainer = PairTrainer(
        model=load_model(base),
        # Without one, TRL takes the starting policy (with adapters off).
        ref_model=load_model(references[0]) if references else None,
        reference_cache=job.work / "reference_log_probs.json",
        args=args,
        train_dataset=Dataset.from_dict(columns),
        processing_class=encoder.tokenizer,
        data_collator=PairCollator(pad),
        peft_config=lora,
        callbacks=[Reporter(job, tokens)],
        sampler=StepSampler(
            [max(len(chosen.ids), len(rejected.ids)) for chosen, rejected in pairs],
            global_batch=global_batch,
            multiple=multiple,
            seed=args.seed,
        ),
    )
    fit(trainer, job)
    save_checkpoint(trainer, job, base)
    record_facts(job, counts, trainer.state.global_step)


def pair_columns(pairs: list[tuple[Side, Side]], empty: int, pad: int) -> dict[str, list[Any]]:
    """Columns of the data set, with `empty` pairs of one unscored token at the end."""
    nothing = Side([pad], [False])
    sides = pairs + [(nothing, nothing)] * empty
    return {
        "chosen_ids": [chosen.ids for chosen, _ in sides],
        "chosen_mask": [chosen.trained for chosen, _ in sides],
        "rejected_ids": [rejected.ids for _, rejected in sides],
        "rejected_mask": [rejected.trained for _, rejected in sides],
    }


if __name__ == "__main__":
    raise SystemExit(run_trainer("trl.dpo", "agentc_backends.trl_trainers.job_dpo", train))

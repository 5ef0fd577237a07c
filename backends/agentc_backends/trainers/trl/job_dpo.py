"""Job of trl.dpo: TRL's DPOTrainer on pairs of token rows with masks."""

from __future__ import annotations

from typing import Any

from agentc.program.job import Job
from agentc_backends.data.chat.formats import FormatError
from agentc_backends.data.chat.rows import MaskRules, Side, encode_pairs
from agentc_backends.data.chat.tokens import load_encoder
from agentc_backends.trainers.common.program import run_trainer
from agentc_backends.trainers.common.rows import pairs_to_compare
from agentc_backends.trainers.common.scoring import sample_of
from agentc_backends.trainers.trl.session import train_with
from agentc_backends.trainers.trl.sharding import ModelLayout, load_with_layout


def train(job: Job) -> None:
    """Optimise the policy of the job on its pairs and write its checkpoint. Raises RowsError,
    FormatError, TrainingDivergedError."""
    rows = pairs_to_compare(job)
    base = job.input("model")
    encoder = load_encoder(base)
    pairs, counts = encode_pairs(encoder, rows, job.config.read_as(MaskRules, at="mask"))

    from trl import DPOConfig

    from agentc_backends.trainers.trl.trainers import NllRules, PairCollator, PairTrainer

    nll = NllRules(**job.config["nll"] or {})
    if nll.on == "whole" and any(side.starts for pair in pairs for side in pair):
        raise FormatError(
            "nll_on: whole counts a conversation's tokens once, and the tokenizer's chat template "
            "rewrites history, so that each turn is a row with a prompt of its own; set "
            "`nll_on: chosen`, or choose a built-in chat_format"
        )

    def trainer(*, layout: ModelLayout, **arguments: Any) -> Any:
        references = [path for path in job.inputs("reference") if path != base]
        return PairTrainer(
            # Without one, TRL takes the starting policy (with adapters off).
            ref_model=load_with_layout(references[0], layout) if references else None,
            reference_cache=job.work / "reference_log_probs.json",
            data_collator=PairCollator(encoder.pad),
            layout=layout,
            nll=nll,
            **arguments,
        )

    def columns(empty: int) -> dict[str, list[Any]]:
        return pair_columns(pairs, empty, encoder.pad)

    sizes = [(len(chosen.ids), len(rejected.ids)) for chosen, rejected in pairs]
    longer, both = [max(size) for size in sizes], [sum(size) for size in sizes]
    prompts = [row["prompt"] for row in rows]
    sample = sample_of(encoder, [chosen.rows()[-1] for chosen, _ in pairs], prompts)
    train_with(job, encoder, counts, DPOConfig, trainer, columns, longer, both, sample)


def pair_columns(pairs: list[tuple[Side, Side]], empty: int, pad: int) -> dict[str, list[Any]]:
    """Columns of the data set, with `empty` pairs of one unscored token at the end."""
    unscored = Side([pad], [False])
    sides = pairs + [(unscored, unscored)] * empty
    positions = {}
    if any(side.starts for pair in pairs for side in pair):
        positions = {
            "chosen_positions": [chosen.positions() for chosen, _ in sides],
            "rejected_positions": [rejected.positions() for _, rejected in sides],
        }
    return positions | {
        "chosen_ids": [chosen.ids for chosen, _ in sides],
        "chosen_mask": [chosen.trained for chosen, _ in sides],
        "rejected_ids": [rejected.ids for _, rejected in sides],
        "rejected_mask": [rejected.trained for _, rejected in sides],
    }


if __name__ == "__main__":
    module = "agentc_backends.trainers.trl.job_dpo"
    raise SystemExit(run_trainer("trl.dpo", train, module=module))

"""Job of trl.sft: TRL's SFTTrainer on token rows with labels."""

from __future__ import annotations

from typing import Any

from agentc.kinds.training import RowChoice
from agentc.program.job import Job
from agentc_backends.data.chat.rows import MaskRules, encode_rows, warn_of_forgotten
from agentc_backends.data.chat.tokens import load_encoder
from agentc_backends.trainers.common.program import run_trainer
from agentc_backends.trainers.common.rows import prompts_of, rows_to_imitate
from agentc_backends.trainers.common.scoring import sample_of
from agentc_backends.trainers.trl.session import train_with


def train(job: Job) -> None:
    """Fine-tune the model of the job and write its checkpoint. Raises RowsError, FormatError,
    TrainingDivergedError."""
    rows, left_out = rows_to_imitate(job, job.config.read_as(RowChoice))
    encoder = load_encoder(job.input("model"))
    sides, counts = encode_rows(encoder, rows, job.config.read_as(MaskRules, at="mask"))
    warn_of_forgotten(job, counts)

    from trl import SFTConfig

    from agentc_backends.trainers.trl.trainers import RowTrainer

    def columns(empty: int) -> dict[str, list[Any]]:
        return {
            "input_ids": [side.ids for side in sides] + [[encoder.pad]] * empty,
            "labels": [side.labels() for side in sides] + [[-100]] * empty,
        }

    lengths = [len(side.ids) for side in sides]
    sample = sample_of(encoder, sides, prompts_of(rows))
    train_with(
        job,
        encoder,
        counts,
        SFTConfig,
        RowTrainer,
        columns,
        lengths,
        lengths,
        sample,
        facts=left_out,
    )


if __name__ == "__main__":
    module = "agentc_backends.trainers.trl.job_sft"
    raise SystemExit(run_trainer("trl.sft", train, module=module))

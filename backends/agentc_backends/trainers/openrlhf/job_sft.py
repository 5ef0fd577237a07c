"""Job of openrlhf.sft: OpenRLHF's train_sft on token rows with masks."""

from __future__ import annotations

from typing import Any

from agentc.kinds.training import RowChoice
from agentc.program.job import Job
from agentc_backends.data.chat.rows import encode_rows, warn_of_forgotten
from agentc_backends.data.chat.tokens import load_encoder
from agentc_backends.trainers.common.program import run_trainer
from agentc_backends.trainers.common.rows import prompts_of, rows_to_imitate
from agentc_backends.trainers.common.scoring import sample_of
from agentc_backends.trainers.openrlhf.session import Schedule, TrainerSettings, train_with


def train(job: Job) -> None:
    """Fine-tune the model of the job and write its checkpoint. Raises RowsError, FormatError,
    TrainingDivergedError."""
    settings = job.config.read_as(TrainerSettings)
    choice = job.config.read_as(RowChoice)
    job.config.assert_all_read()
    rows, left_out = rows_to_imitate(job, choice)
    encoder = load_encoder(job.input("model"))
    sides, counts = encode_rows(encoder, rows, settings.mask)
    warn_of_forgotten(job, counts)

    def data_set(schedule: Schedule, tokenizer: Any) -> Any:
        from agentc_backends.trainers.openrlhf.trainers import TokenRows

        return TokenRows(sides, schedule, tokenizer)

    lengths = [len(side.ids) for side in sides]
    sample = sample_of(encoder, sides, prompts_of(rows))
    train_with(job, "sft", settings, lengths, lengths, counts, data_set, sample, **left_out)


if __name__ == "__main__":
    module = "agentc_backends.trainers.openrlhf.job_sft"
    raise SystemExit(run_trainer("openrlhf.sft", train, module=module))

"""Job of openrlhf.sft: OpenRLHF's train_sft on token rows whose masks are already made."""

from __future__ import annotations

from typing import Any

from agentc.runtime.program import Job
from agentc_backends.chat.rows import encode_rows
from agentc_backends.chat.tokens import load_encoder
from agentc_backends.openrlhf_trainers.schedule import Schedule
from agentc_backends.openrlhf_trainers.session import read_settings, train_with
from agentc_backends.trl_trainers.job_sft import select_rows
from agentc_backends.trl_trainers.session import input_rows, run_trainer


def train(job: Job) -> None:
    """Fine-tune the model of the job and write its checkpoint. Raises RowsError, FormatError,
    TrainingDivergedError."""
    settings = read_settings(job.config)
    min_reward = job.config["min_reward"]
    job.config.assert_all_read()
    rows, left_out = select_rows(
        input_rows(job.inputs("data"), ("trajectories.jsonl", "rows.jsonl")), min_reward
    )
    encoder = load_encoder(job.input("model"))
    sides, counts = encode_rows(encoder, rows, settings.mask)

    def data_set(schedule: Schedule, tokenizer: Any) -> Any:
        from agentc_backends.openrlhf_trainers.datasets import TokenRows

        return TokenRows(sides, schedule, tokenizer)

    lengths = [len(side.ids) for side in sides]
    train_with(job, "sft", settings, lengths, lengths, counts, data_set, **left_out)


if __name__ == "__main__":
    module = "agentc_backends.openrlhf_trainers.job_sft"
    raise SystemExit(run_trainer("openrlhf.sft", module, train))

"""Job of openrlhf.dpo: OpenRLHF's train_dpo on pairs of token rows whose masks are already made."""

from __future__ import annotations

from typing import Any

from agentc.runtime.program import Job
from agentc_backends.chat.rows import encode_pairs
from agentc_backends.chat.tokens import load_encoder
from agentc_backends.openrlhf_trainers.schedule import Schedule
from agentc_backends.openrlhf_trainers.session import read_settings, train_with
from agentc_backends.trl_trainers.session import input_rows, run_trainer


def train(job: Job) -> None:
    """Optimise the policy of the job on its pairs and write its checkpoint. Raises RowsError,
    FormatError, TrainingDivergedError."""
    settings = read_settings(job.config)
    job.config.assert_all_read()
    rows = input_rows(job.inputs("data"), ("pairs.jsonl",))
    encoder = load_encoder(job.input("model"))
    pairs, counts = encode_pairs(encoder, rows, settings.mask)

    def data_set(schedule: Schedule, tokenizer: Any) -> Any:
        from agentc_backends.openrlhf_trainers.datasets import TokenPairs

        return TokenPairs(pairs, schedule, tokenizer)

    lengths = [max(len(chosen.ids), len(rejected.ids)) for chosen, rejected in pairs]
    tokens = [len(chosen.ids) + len(rejected.ids) for chosen, rejected in pairs]
    train_with(job, "dpo", settings, lengths, tokens, counts, data_set)


if __name__ == "__main__":
    module = "agentc_backends.openrlhf_trainers.job_dpo"
    raise SystemExit(run_trainer("openrlhf.dpo", module, train))

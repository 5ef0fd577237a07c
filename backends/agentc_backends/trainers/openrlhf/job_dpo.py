"""Job of openrlhf.dpo: OpenRLHF's train_dpo on pairs of token rows with masks."""

from __future__ import annotations

from typing import Any

from agentc.program.job import Job
from agentc_backends.data.chat.formats import FormatError
from agentc_backends.data.chat.rows import encode_pairs
from agentc_backends.data.chat.tokens import load_encoder
from agentc_backends.trainers.common.program import run_trainer
from agentc_backends.trainers.common.rows import pairs_to_compare
from agentc_backends.trainers.common.scoring import sample_of
from agentc_backends.trainers.openrlhf.session import Schedule, TrainerSettings, train_with


def train(job: Job) -> None:
    """Optimise the policy of the job on its pairs and write its checkpoint. Raises RowsError,
    FormatError, TrainingDivergedError."""
    settings = job.config.read_as(TrainerSettings)
    job.config.assert_all_read()
    rows = pairs_to_compare(job)
    encoder = load_encoder(job.input("model"))
    pairs, counts = encode_pairs(encoder, rows, settings.mask)
    if any(side.starts for pair in pairs for side in pair):
        raise FormatError(
            "the tokenizer's chat template rewrites history, so that a side with several turns is "
            "a row for each, which openrlhf.dpo does not take; use `backend: trl.dpo`, or choose "
            "a built-in chat_format on the model stage"
        )

    def data_set(schedule: Schedule, tokenizer: Any) -> Any:
        from agentc_backends.trainers.openrlhf.trainers import TokenPairs

        return TokenPairs(pairs, schedule, tokenizer)

    lengths = [max(len(chosen.ids), len(rejected.ids)) for chosen, rejected in pairs]
    tokens = [len(chosen.ids) + len(rejected.ids) for chosen, rejected in pairs]
    prompts = [row["prompt"] for row in rows]
    sample = sample_of(encoder, [chosen for chosen, _ in pairs], prompts)
    train_with(job, "dpo", settings, lengths, tokens, counts, data_set, sample)


if __name__ == "__main__":
    module = "agentc_backends.trainers.openrlhf.job_dpo"
    raise SystemExit(run_trainer("openrlhf.dpo", train, module=module))

"""Takes the directory of an encoder of texts into a run: the files that are wanted, checked. Shared
by job_hf and job_path."""

from __future__ import annotations

from pathlib import Path

from agentc.runtime.program import Job
from agentc_backends.data.models.encoders.take import check_directory_of, take_files

WANTED = (
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "*.safetensors",
    "*.safetensors.index.json",
)
TYPES = (
    "albert", "bert", "camembert", "deberta-v2", "distilbert", "electra", "modernbert", "mpnet",
    "roberta", "xlm-roberta",
)  # fmt: skip
"""Of `model_type` in config.json: those that see both ways and that transformers loads without
code of the repository's."""


def take_text_encoder(source: Path, job: Job) -> None:
    """Fill `job.out` from `source`. Raises CheckpointError."""
    needed = ("tokenizer.json", "save it with a fast tokenizer first")
    check_directory_of(source, TYPES, needed)
    take_files(source, WANTED, job)

"""Takes the directory of an encoder of texts into a run: the files that are wanted, checked. Shared
by job_hf and job_path."""

from __future__ import annotations

from pathlib import Path

from agentc.program.job import Job
from agentc.runtime.model_folder.folder import Needs
from agentc_backends.data.models.checkpoint import check_directory
from agentc_backends.data.models.encoders.take import require_type, take_files

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


def take_text_encoder(source: Path, job: Job, shown: str) -> None:
    """Fill `job.out` from `source`, which messages call `shown`. Raises CheckpointError."""
    require_type(check_directory(source, shown, Needs(language=False)), TYPES, shown)
    take_files(source, WANTED, job)

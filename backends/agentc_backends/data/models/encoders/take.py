"""Takes the directory of an encoder of pictures into a run: the files that are wanted, checked.
Shared by job_hf and job_path; `../text_encoders/take.py` takes those of texts by its parts."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from agentc.program.job import Job
from agentc.runtime.model_folder.folder import ModelFolder, Needs
from agentc_backends.data.models.checkpoint import CheckpointError, check_directory

WANTED = (
    "config.json",
    "preprocessor_config.json",
    "*.safetensors",
    "*.safetensors.index.json",
)
TYPES = ("clip", "clip_vision_model")
"""Of `model_type` in config.json: CLIP whole, and its half that sees."""


def take_encoder(source: Path, job: Job, shown: str) -> None:
    """Fill `job.out` from `source`, which messages call `shown`. Raises CheckpointError."""
    check_encoder_directory(source, shown)
    take_files(source, WANTED, job)


def check_encoder_directory(directory: Path, shown: str = "") -> None:
    """Raise CheckpointError unless `directory` holds a whole CLIP."""
    folder = check_directory(directory, shown, Needs(tokenizer=False, language=False))
    require_type(folder, TYPES, shown or directory.name)
    if not (directory / "preprocessor_config.json").is_file():
        raise CheckpointError(
            f"{shown or directory.name} has no preprocessor_config.json: nothing says how it wants "
            "its pictures"
        )


def require_type(folder: ModelFolder, types: Sequence[str], shown: str) -> None:
    """Raise CheckpointError unless a model is of one of these types."""
    kind = folder.config.get("model_type")
    if kind not in types:
        raise CheckpointError(f"{shown} is a model of type {kind!r}; expected {' or '.join(types)}")


def take_files(source: Path, wanted: Sequence[str], job: Job) -> None:
    """Copy the files of these patterns into `job.out`."""
    for pattern in wanted:
        for path in sorted(source.glob(pattern)):
            shutil.copyfile(path.resolve(), job.out / path.name)
    weights = sorted(job.out.glob("*.safetensors"))
    job.facts(weight_files=len(weights), weight_bytes=sum(p.stat().st_size for p in weights))

"""Takes the directory of an encoder of pictures into a run: the files that are wanted, checked.
Shared by job_hf and job_path; `../text_encoders/take.py` takes those of texts by its parts."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from agentc.runtime.program import Job
from agentc_backends.data.models.checkpoint import PICKLES, CheckpointError

WANTED = (
    "config.json",
    "preprocessor_config.json",
    "*.safetensors",
    "*.safetensors.index.json",
)
TYPES = ("clip", "clip_vision_model")
"""Of `model_type` in config.json: CLIP whole, and its half that sees."""


def take_encoder(source: Path, job: Job) -> None:
    """Fill `job.out` from `source`. Raises CheckpointError."""
    check_encoder_directory(source)
    take_files(source, WANTED, job)


def check_encoder_directory(directory: Path) -> None:
    """Raise CheckpointError unless `directory` holds a CLIP whose weights are safetensors only."""
    needed = ("preprocessor_config.json", "nothing says how it wants its pictures")
    check_directory_of(directory, TYPES, needed)


def check_directory_of(directory: Path, types: Sequence[str], needed: tuple[str, str]) -> None:
    """Raise CheckpointError unless `directory` holds a model of one of these types, whose weights
    are safetensors only, and the file `needed`, of which is told what its absence means."""
    for name, what in (("config.json", "not a model directory"), needed):
        if not (directory / name).is_file():
            raise CheckpointError(f"{directory.name} has no {name}: {what}")
    try:
        found = json.loads((directory / "config.json").read_bytes())
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"config.json of {directory.name} is no JSON: {error}") from None
    kind = found.get("model_type") if isinstance(found, dict) else None
    if kind not in types:
        raise CheckpointError(
            f"{directory.name} is a model of type {kind!r}; expected {' or '.join(types)}"
        )
    if not any(path.suffix == ".safetensors" for path in directory.iterdir()):
        pickled = sorted(p.name for p in directory.iterdir() if p.suffix in PICKLES)
        shown = f" (found {', '.join(pickled)}, which can run code when read)" if pickled else ""
        raise CheckpointError(
            f"{directory.name} has no .safetensors weights{shown}; convert them first: load the "
            "model where you trust them, and `save_pretrained` it"
        )


def take_files(source: Path, wanted: Sequence[str], job: Job) -> None:
    """Copy the files of these patterns into `job.out`."""
    for pattern in wanted:
        for path in sorted(source.glob(pattern)):
            shutil.copyfile(path.resolve(), job.out / path.name)
    weights = sorted(job.out.glob("*.safetensors"))
    job.facts(weight_files=len(weights), weight_bytes=sum(p.stat().st_size for p in weights))

"""Copies the directory of a model or an encoder into a run: the files that are needed, checked,
with the chat format of a model set."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from agentc.program.artifact_files import SCORED_FILE
from agentc.program.job import Job
from agentc.runtime.model_folder.folder import ModelFolder, Needs
from agentc_backends.data.models.checkpoint import (
    CheckpointError,
    align_tokenizer,
    check_directory,
    set_chat_format,
)

MODEL_FILES = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.jinja",
    "tokenizer.model",
    "vocab.json",
    "merges.txt",
    # How a model that sees wants its pictures.
    "preprocessor_config.json",
    "processor_config.json",
    "video_preprocessor_config.json",
    # Beside a checkpoint of a run: what its trainer gave some of its tokens.
    SCORED_FILE,
    "*.safetensors",
    "*.safetensors.index.json",
)
"""Patterns of the files of a checkpoint; all else of a repository stays where it is."""


def copy_of_kind(job: Job, *, link: bool) -> Callable[[Path, str], None]:
    """What copies a directory, by its name in messages, for a job of the kind `model`, `encoder` or
    `text_encoder`. It reads what else of the job's config it needs."""
    match job.spec["kind"]:
        case "model":
            chat_format: str = job.config["chat_format"]
            return lambda source, shown: copy_model(
                source, job, chat_format, shown=shown, link=link
            )
        case "encoder":
            return lambda source, shown: copy_encoder(source, job, shown)
        case "text_encoder":
            return lambda source, shown: copy_text_encoder(source, job, shown)
        case kind:
            raise RuntimeError(f"no model is of the kind {kind!r}")


def copy_model(source: Path, job: Job, chat_format: str, *, shown: str, link: bool) -> None:
    """Fill `job.out` from `source`, which messages call `shown`; with `link`, weights are
    hard-linked where the file system allows, which is only safe when nobody changes them. Raises
    CheckpointError, FormatError."""
    folder = check_directory(source, shown)
    for pattern in MODEL_FILES:
        for path in sorted(source.glob(pattern)):
            _copy(path, job.out / path.name, link=link)
    _write_generation_config(job.out)
    _split_template(job.out)
    align_tokenizer(job.out)
    set_chat_format(job.out, chat_format)
    weights = sorted(job.out.glob("*.safetensors"))
    job.facts(
        parameters=folder.parameters,
        weight_files=len(weights),
        weight_bytes=sum(p.stat().st_size for p in weights),
    )


def _copy(source: Path, target: Path, *, link: bool) -> None:
    real = source.resolve()
    if link and source.suffix == ".safetensors":
        with contextlib.suppress(OSError):
            os.link(real, target)
            return
    if not _clone(real, target):
        shutil.copyfile(real, target)


_FICLONE = 0x40049409
"""Linux: the file shares the blocks of another one until either is written to."""


def _clone(source: Path, target: Path) -> bool:
    """Make a copy that takes no space, on file systems that can (Btrfs, XFS, bcachefs)."""
    try:
        with source.open("rb") as shared, target.open("wb") as copy:
            fcntl.ioctl(copy.fileno(), _FICLONE, shared.fileno())
    except OSError:
        return False
    return True


def _write_generation_config(directory: Path) -> None:
    if (directory / "generation_config.json").exists():
        return
    from transformers import AutoConfig, GenerationConfig

    try:
        config = AutoConfig.from_pretrained(str(directory), trust_remote_code=False)
    except ValueError as error:
        raise CheckpointError(f"config.json is not understood: {error}") from None
    GenerationConfig.from_model_config(config).save_pretrained(str(directory))


def _split_template(directory: Path) -> None:
    """Older checkpoints keep the template inside tokenizer_config.json; every reader of a run
    finds it in chat_template.jinja."""
    from transformers import AutoTokenizer

    if (directory / "chat_template.jinja").exists():
        return
    template = AutoTokenizer.from_pretrained(str(directory), trust_remote_code=False).chat_template
    if isinstance(template, str):
        (directory / "chat_template.jinja").write_text(template, encoding="utf-8")


ENCODER_FILES = (
    "config.json",
    "preprocessor_config.json",
    "*.safetensors",
    "*.safetensors.index.json",
)
ENCODER_TYPES = ("clip", "clip_vision_model")
"""Of `model_type` in config.json: CLIP whole, and its half that sees."""


def copy_encoder(source: Path, job: Job, shown: str) -> None:
    """Fill `job.out` from `source`, which messages call `shown`. Raises CheckpointError."""
    check_encoder_directory(source, shown)
    copy_files(source, ENCODER_FILES, job)


def check_encoder_directory(directory: Path, shown: str = "") -> None:
    """Raise CheckpointError unless `directory` holds a whole CLIP."""
    folder = check_directory(directory, shown, Needs(tokenizer=False, language=False))
    require_type(folder, ENCODER_TYPES, shown or directory.name)
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


def copy_files(source: Path, wanted: Sequence[str], job: Job) -> None:
    """Copy the files of these patterns into `job.out`."""
    for pattern in wanted:
        for path in sorted(source.glob(pattern)):
            shutil.copyfile(path.resolve(), job.out / path.name)
    weights = sorted(job.out.glob("*.safetensors"))
    job.facts(weight_files=len(weights), weight_bytes=sum(p.stat().st_size for p in weights))


TEXT_ENCODER_FILES = (
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "*.safetensors",
    "*.safetensors.index.json",
)
TEXT_ENCODER_TYPES = (
    "albert", "bert", "camembert", "deberta-v2", "distilbert", "electra", "modernbert", "mpnet",
    "roberta", "xlm-roberta",
)  # fmt: skip
"""Of `model_type` in config.json: those that see both ways and that transformers loads without
code of the repository's."""


def copy_text_encoder(source: Path, job: Job, shown: str) -> None:
    """Fill `job.out` from `source`, which messages call `shown`. Raises CheckpointError."""
    require_type(check_directory(source, shown, Needs(language=False)), TEXT_ENCODER_TYPES, shown)
    copy_files(source, TEXT_ENCODER_FILES, job)

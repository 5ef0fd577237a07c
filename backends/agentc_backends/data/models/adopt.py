"""Takes a model directory into a run: the files that are wanted, checked, with the chat format
settled. Shared by job_hf and job_path."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

from agentc.program.job import Job
from agentc_backends.data.models.checkpoint import (
    CheckpointError,
    check_directory,
    settle_chat_format,
    settle_tokenizer,
)
from agentc_backends.data.models.scored_rows import SCORED_FILE

WANTED = (
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


def adopt(source: Path, job: Job, chat_format: str, *, shown: str, link: bool) -> None:
    """Fill `job.out` from `source`, which messages call `shown`; with `link`, weights are
    hard-linked where the file system allows, which is only safe when nobody changes them. Raises
    CheckpointError, FormatError."""
    folder = check_directory(source, shown)
    for pattern in WANTED:
        for path in sorted(source.glob(pattern)):
            _take(path, job.out / path.name, link=link)
    _write_generation_config(job.out)
    _split_template(job.out)
    settle_tokenizer(job.out)
    settle_chat_format(job.out, chat_format)
    weights = sorted(job.out.glob("*.safetensors"))
    job.facts(
        parameters=folder.parameters,
        weight_files=len(weights),
        weight_bytes=sum(p.stat().st_size for p in weights),
    )


def _take(source: Path, target: Path, *, link: bool) -> None:
    real = source.resolve()
    if link and source.suffix == ".safetensors":
        with contextlib.suppress(OSError):
            os.link(real, target)
            return
    shutil.copyfile(real, target)


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

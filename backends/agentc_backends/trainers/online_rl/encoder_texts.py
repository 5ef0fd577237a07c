"""What an encoder of its own reads of a policy's texts: their words, without the marks of the chat.

Neighbours: `reading.py`, which reads by it; `data/models/text_encoders`, where encoders come from;
`run_critic.py`, which puts trained weights into one of a published run.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from agentc.program.job import Job
from agentc_backends.agents.common.failures import FatalError
from agentc_backends.data.models.checkpoint import companion_files
from agentc_backends.trainers.online_rl.reading import EncoderReader, Pool, Translate

_REMEMBERED = 1 << 16
"""Texts whose tokens are kept: a run reads each of its newest ones many times."""

_COUNTED_FROM_PADDING = ("camembert", "roberta", "xlm-roberta")


def encoder_of(
    job: Job, policy_tokenizer: Any, told: Mapping[str, Any] | None, seed: int
) -> EncoderReader | None:
    """The reader of a job's `encoder`, where it has one, by what its config says of it. Raises
    FatalError for an encoder that cannot read so."""
    if told is None:
        return None
    try:
        return load_encoder(
            job.input("encoder"), policy_tokenizer, told["pool"], told["max_length"], seed
        )
    except ValueError as error:
        raise FatalError(str(error)) from error


def load_encoder(
    folder: Path, policy_tokenizer: Any, pool: Pool, longest: int, seed: int
) -> EncoderReader:
    """An EncoderReader of a TextEncoder's folder, in float32 and without dropout. Weights that the
    folder lacks, as most lack those of the pooler, follow from `seed`. Raises ValueError for an
    encoder without the pooler that is asked for, or that cannot read so many tokens."""
    from transformers import AutoModel, AutoTokenizer

    torch.manual_seed(seed)
    encoder = AutoModel.from_pretrained(str(folder), dtype=torch.float32, trust_remote_code=False)
    tokenizer = AutoTokenizer.from_pretrained(str(folder), trust_remote_code=False)
    return _reader(encoder, tokenizer, policy_tokenizer, pool, longest)


def untrained_encoder(
    folder: Path, policy_tokenizer: Any, pool: Pool, longest: int
) -> EncoderReader:
    """The same of a folder without weights, which are random here: a run has them trained, in its
    critic. Raises ValueError as `load_encoder` does, OSError for a folder that has no encoder."""
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    config = AutoConfig.from_pretrained(str(folder), trust_remote_code=False)
    encoder = AutoModel.from_config(config, dtype=torch.float32, trust_remote_code=False)
    tokenizer = AutoTokenizer.from_pretrained(str(folder), trust_remote_code=False)
    return _reader(encoder, tokenizer, policy_tokenizer, pool, longest)


def write_encoder(source: Path, target: Path) -> None:
    """What `untrained_encoder` needs of an encoder's folder: its shape, and its tokenizer."""
    target.mkdir()
    for path in (source / "config.json", *companion_files(source)):
        shutil.copyfile(path, target / path.name)


def _reader(
    encoder: Any, tokenizer: Any, policy_tokenizer: Any, pool: Pool, longest: int
) -> EncoderReader:
    encoder.eval()
    if pool == "pooler" and getattr(encoder, "pooler", None) is None:
        raise ValueError(
            f"a {encoder.config.model_type} has no pooler; set `critic.pool` to first or mean"
        )
    # RoBERTa counts its positions from behind that of the padding.
    first = getattr(getattr(encoder, "embeddings", None), "padding_idx", None)
    places = int(getattr(encoder.config, "max_position_embeddings", longest))
    if encoder.config.model_type in _COUNTED_FROM_PADDING and first is not None:
        places -= first + 1
    room = min(int(tokenizer.model_max_length), places)
    if longest > room:
        raise ValueError(
            f"the encoder reads texts of {room} tokens at most; set `critic.max_length` to that"
        )
    width = int(encoder.config.hidden_size)
    return EncoderReader(encoder, width, pool, translation(policy_tokenizer, tokenizer, longest))


def translation(policy_tokenizer: Any, tokenizer: Any, longest: int) -> Translate:
    """From the tokens of one into at most `longest` of the other, the last ones, for the newest say
    most; its own marks at the ends stay."""
    tokenizer.truncation_side = "left"

    @lru_cache(maxsize=_REMEMBERED)
    def translate(ids: tuple[int, ...]) -> tuple[int, ...]:
        text = policy_tokenizer.decode(
            ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        found: list[int] = tokenizer(text, truncation=True, max_length=longest)["input_ids"]
        return tuple(found)

    return translate

"""Readers: the features of a text for a critic, one vector, from a causal body or an encoder.

A causal body reads a whole episode at once: each state is a prefix of it, and the features of the
prefix's last token do not depend on what follows. A bidirectional encoder reads each prefix
separately. It reads the words of a policy's texts in its own tokens, without the special tokens of
the chat format.
"""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import torch
from torch import Tensor, nn

from agentc.kinds.reinforcement import EncoderReading
from agentc.program.job import Job
from agentc_backends.agents.common.failures import FatalError
from agentc_backends.data.models.checkpoint import companion_files

Pool: TypeAlias = Literal["pooler", "first", "mean", "last"]
Translate: TypeAlias = Callable[[tuple[int, ...]], tuple[int, ...]]
"""A policy's tokens of a text -> an encoder's."""
T = TypeVar("T")
_STRETCH, _SLACK, _TOKENS = 1.25, 4, 16384
_CACHED = 1 << 16
"""Texts whose tokens are cached: a run reads each of its newest ones many times."""
_POSITIONS_AFTER_PADDING = ("camembert", "roberta", "xlm-roberta")
"""Models that count positions from the index of the padding token on."""


@dataclass(frozen=True, slots=True)
class Text:
    """Token ids. Prefixes of equal texts are read together."""

    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TextPrefix:
    """The first `length` tokens of a text, at least one."""

    text: Text
    length: int

    @property
    def ids(self) -> tuple[int, ...]:
        """The tokens."""
        return self.text.ids[: self.length]


def whole_text(text: Text) -> TextPrefix:
    """All of a text."""
    return TextPrefix(text, len(text.ids))


class Reader(nn.Module, ABC):  # type: ignore[misc]
    """`forward` returns the features [B, `width`] of prefixes, in their order."""

    width: int

    @abstractmethod
    def forward(self, prefixes: Sequence[TextPrefix]) -> Tensor: ...


class CausalReader(Reader):
    """Features at the last token of each prefix, from a decoder without its head (`body`, with the
    interface of transformers: `input_ids`, `attention_mask`, `last_hidden_state`)."""

    def __init__(self, body: nn.Module, width: int) -> None:
        super().__init__()
        self.body, self.width = body, width

    def forward(self, prefixes: Sequence[TextPrefix]) -> Tensor:
        longest: dict[Text, int] = {}
        for prefix in prefixes:
            longest[prefix.text] = max(longest.get(prefix.text, 0), prefix.length)
        wanted: dict[Text, list[int]] = {text: [] for text in longest}
        for number, prefix in enumerate(prefixes):
            wanted[prefix.text].append(number)
        texts = sorted(longest, key=lambda text: longest[text])  # stable
        features, order = [], []
        for part in _similar_lengths(texts, [longest[text] for text in texts]):
            rows = [text.ids[: longest[text]] for text in part]
            states = _hidden(self.body, *_padded(rows, self._device()))
            numbers = [(row, number) for row, text in enumerate(part) for number in wanted[text]]
            row = torch.tensor([row for row, _ in numbers], device=states.device)
            at = [prefixes[number].length - 1 for _, number in numbers]
            features.append(states[row, torch.tensor(at, device=states.device)])
            order += [number for _, number in numbers]
        back = torch.empty(len(order), dtype=torch.long)
        back[torch.tensor(order)] = torch.arange(len(order))
        return torch.cat(features)[back.to(features[0].device)]

    def _device(self) -> torch.device:
        return next(self.body.parameters()).device


class EncoderReader(Reader):
    """Features of each distinct prefix from a bidirectional encoder, whose tokens `translate` makes
    of the policy's."""

    def __init__(self, encoder: nn.Module, width: int, pool: Pool, translate: Translate) -> None:
        super().__init__()
        self.encoder, self.width, self.pool = encoder, width, pool
        self._translate = translate

    def forward(self, prefixes: Sequence[TextPrefix]) -> Tensor:
        texts = [self._translate(prefix.ids) for prefix in prefixes]
        distinct = sorted(set(texts), key=lambda ids: (len(ids), ids))
        device = next(self.encoder.parameters()).device
        features = []
        for part in _similar_lengths(distinct, [*map(len, distinct)]):
            ids, mask = _padded(part, device)
            output = self.encoder(input_ids=ids, attention_mask=mask)
            features.append(self._pooled(output, mask))
        numbers = {ids: number for number, ids in enumerate(distinct)}
        return torch.cat(features)[torch.tensor([numbers[ids] for ids in texts], device=device)]

    def _pooled(self, output: Any, mask: Tensor) -> Tensor:
        states: Tensor = output.last_hidden_state
        match self.pool:
            case "pooler":
                pooled: Tensor = output.pooler_output
                return pooled
            case "first":
                return states[:, 0]
            case "last":
                rows = torch.arange(len(states), device=states.device)
                return states[rows, mask.sum(dim=1) - 1]
            case "mean":
                weights = mask.unsqueeze(2).to(states.dtype)
                return (states * weights).sum(dim=1) / weights.sum(dim=1)


def _hidden(body: nn.Module, ids: Tensor, mask: Tensor) -> Tensor:
    # Under a causal mask no token attends to the padding on its right, and positions are those of
    # the text itself, whatever else is in the batch.
    states: Tensor = body(input_ids=ids, attention_mask=mask, use_cache=False).last_hidden_state
    return states


def _similar_lengths(texts: Sequence[T], lengths: Sequence[int]) -> Iterator[Sequence[T]]:
    """Texts, sorted by length, in parts for one forward pass each. No text is padded to more than
    `_STRETCH` times its length (plus `_SLACK` tokens), since padding costs as much as text, and no
    part holds more than `_TOKENS`, so that memory does not grow with the batch."""
    start = 0
    for end in range(1, len(texts) + 1):
        if end < len(texts):
            fits = (end + 1 - start) * lengths[end] <= _TOKENS
            if fits and lengths[end] <= _STRETCH * lengths[start] + _SLACK:
                continue
        yield texts[start:end]
        start = end


def _padded(rows: Sequence[tuple[int, ...]], device: torch.device) -> tuple[Tensor, Tensor]:
    """Ids and mask [B, T]. The padding, token 0, is masked."""
    width = max(map(len, rows))
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    mask = torch.zeros(len(rows), width, dtype=torch.long)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = torch.tensor(row)
        mask[number, : len(row)] = 1
    return ids.to(device), mask.to(device)


def encoder_of(
    job: Job, policy_tokenizer: Any, reading: EncoderReading | None, seed: int
) -> EncoderReader | None:
    """The reader of a job's input `encoder` as its config has it read; None where it has none.
    Raises FatalError for an encoder that these settings do not fit."""
    if reading is None:
        return None
    try:
        return load_encoder(
            job.input("encoder"), policy_tokenizer, reading.pool, reading.max_length, seed
        )
    except ValueError as error:
        raise FatalError(str(error)) from error


def load_encoder(
    folder: Path, policy_tokenizer: Any, pool: Pool, longest: int, seed: int
) -> EncoderReader:
    """The EncoderReader of a TextEncoder's folder, in float32 and without dropout. Weights that the
    folder lacks (most lack those of the pooler) are drawn from `seed`. Raises ValueError where
    `pool` needs a pooler that is missing, and where the encoder's texts are shorter than `longest`
    tokens."""
    from transformers import AutoModel, AutoTokenizer

    torch.manual_seed(seed)
    encoder = AutoModel.from_pretrained(str(folder), dtype=torch.float32, trust_remote_code=False)
    tokenizer = AutoTokenizer.from_pretrained(str(folder), trust_remote_code=False)
    return _reader(encoder, tokenizer, policy_tokenizer, pool, longest)


def untrained_encoder(
    folder: Path, policy_tokenizer: Any, pool: Pool, longest: int
) -> EncoderReader:
    """The same of a folder without weights, which are random here: the trained ones are in a run's
    critic. Raises ValueError as `load_encoder` does, OSError for a folder that has no encoder."""
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    config = AutoConfig.from_pretrained(str(folder), trust_remote_code=False)
    encoder = AutoModel.from_config(config, dtype=torch.float32, trust_remote_code=False)
    tokenizer = AutoTokenizer.from_pretrained(str(folder), trust_remote_code=False)
    return _reader(encoder, tokenizer, policy_tokenizer, pool, longest)


def write_encoder(source: Path, target: Path) -> None:
    """Copy what `untrained_encoder` needs: the configuration and the tokenizer."""
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
    first = getattr(getattr(encoder, "embeddings", None), "padding_idx", None)
    places = int(getattr(encoder.config, "max_position_embeddings", longest))
    if encoder.config.model_type in _POSITIONS_AFTER_PADDING and first is not None:
        places -= first + 1
    room = min(int(tokenizer.model_max_length), places)
    if longest > room:
        raise ValueError(
            f"the encoder reads texts of {room} tokens at most; set `critic.max_length` to that"
        )
    width = int(encoder.config.hidden_size)
    return EncoderReader(encoder, width, pool, translation(policy_tokenizer, tokenizer, longest))


def translation(policy_tokenizer: Any, tokenizer: Any, longest: int) -> Translate:
    """From the policy's tokens to at most `longest` of the encoder's. The beginning is cut off, for
    the newest words matter most; the encoder's own special tokens stay."""
    tokenizer.truncation_side = "left"

    @lru_cache(maxsize=_CACHED)
    def translate(ids: tuple[int, ...]) -> tuple[int, ...]:
        text = policy_tokenizer.decode(
            ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        encoded: list[int] = tokenizer(text, truncation=True, max_length=longest)["input_ids"]
        return tuple(encoded)

    return translate

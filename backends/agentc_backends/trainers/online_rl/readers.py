"""Readers: what a critic sees of a text, one vector each, from an encoder or from a causal body.

A causal body reads a whole episode at once: each state is a prefix of it, and what stands at the
prefix's last token knows nothing of what follows. An encoder that sees both ways has to read each
prefix anew. Neighbours: `critic.py`,
`encoder_texts.py`.
"""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import torch
from torch import Tensor, nn

from agentc.program.job import Job
from agentc_backends.agents.common.failures import FatalError
from agentc_backends.data.models.checkpoint import companion_files

Pool: TypeAlias = Literal["pooler", "first", "mean", "last"]
T = TypeVar("T")
_STRETCH, _SLACK, _TOKENS = 1.25, 4, 16384
Translate: TypeAlias = Callable[[tuple[int, ...]], tuple[int, ...]]
"""A text in a policy's tokens, in those of an encoder."""


@dataclass(frozen=True, slots=True)
class Text:
    """Token ids. Prefixes of one, or of equal ones, are read together."""

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
    """`forward` takes prefixes and gives their features [B, `width`], in their order."""

    width: int

    @abstractmethod
    def forward(self, prefixes: Sequence[TextPrefix]) -> Tensor: ...


class CausalReader(Reader):
    """Reads the last token of each prefix from a decoder without its head (`body`, of the kind of
    transformers: `input_ids`, `attention_mask`, `last_hidden_state`)."""

    def __init__(self, body: nn.Module, width: int) -> None:
        super().__init__()
        self.body, self.width = body, width

    def forward(self, prefixes: Sequence[TextPrefix]) -> Tensor:
        longest: dict[Text, int] = {}
        for one in prefixes:
            longest[one.text] = max(longest.get(one.text, 0), one.length)
        wanted: dict[Text, list[int]] = {text: [] for text in longest}
        for number, one in enumerate(prefixes):
            wanted[one.text].append(number)
        texts = sorted(longest, key=lambda text: longest[text])  # stable: of equal ones the first
        found, order = [], []
        for part in _of_like_length(texts, [longest[text] for text in texts]):
            rows = [text.ids[: longest[text]] for text in part]
            states = _hidden(self.body, *_padded(rows, self._device()))
            numbers = [(row, number) for row, text in enumerate(part) for number in wanted[text]]
            row = torch.tensor([row for row, _ in numbers], device=states.device)
            at = [prefixes[number].length - 1 for _, number in numbers]
            found.append(states[row, torch.tensor(at, device=states.device)])
            order += [number for _, number in numbers]
        back = torch.empty(len(order), dtype=torch.long)
        back[torch.tensor(order)] = torch.arange(len(order))
        return torch.cat(found)[back.to(found[0].device)]

    def _device(self) -> torch.device:
        return next(self.body.parameters()).device


class EncoderReader(Reader):
    """Reads each distinct prefix by an encoder that sees both ways, in its own tokens, which
    `translate` makes of the policy's."""

    def __init__(self, encoder: nn.Module, width: int, pool: Pool, translate: Translate) -> None:
        super().__init__()
        self.encoder, self.width, self.pool = encoder, width, pool
        self._translate = translate

    def forward(self, prefixes: Sequence[TextPrefix]) -> Tensor:
        kept = [self._translate(one.ids) for one in prefixes]
        distinct = sorted(set(kept), key=lambda ids: (len(ids), ids))
        device = next(self.encoder.parameters()).device
        found = []
        for part in _of_like_length(distinct, [*map(len, distinct)]):
            ids, mask = _padded(part, device)
            output = self.encoder(input_ids=ids, attention_mask=mask)
            found.append(self._pooled(output, mask))
        numbers = {ids: number for number, ids in enumerate(distinct)}
        return torch.cat(found)[torch.tensor([numbers[ids] for ids in kept], device=device)]

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
    # Right padding under a causal mask reaches no token before it: positions are those of the
    # text itself, whatever stands beside it in the batch.
    found: Tensor = body(input_ids=ids, attention_mask=mask, use_cache=False).last_hidden_state
    return found


def _of_like_length(texts: Sequence[T], lengths: Sequence[int]) -> Iterator[Sequence[T]]:
    """Texts, shortest first, in parts that go through a model together: none is padded to more than
    `_STRETCH` times its length (and `_SLACK` tokens), for padding costs what text does, and each
    part holds at most `_TOKENS`, so that memory does not grow with the batch."""
    start = 0
    for end in range(1, len(texts) + 1):
        if end < len(texts):
            fits = (end + 1 - start) * lengths[end] <= _TOKENS
            if fits and lengths[end] <= _STRETCH * lengths[start] + _SLACK:
                continue
        yield texts[start:end]
        start = end


def _padded(rows: Sequence[tuple[int, ...]], device: torch.device) -> tuple[Tensor, Tensor]:
    """Ids and mask [B, T]. Padding is by token 0: no weight looks at it, for the mask hides it."""
    width = max(map(len, rows))
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    mask = torch.zeros(len(rows), width, dtype=torch.long)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = torch.tensor(row)
        mask[number, : len(row)] = 1
    return ids.to(device), mask.to(device)


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

"""A checkpoint's model and its ragged forward pass: several sequences packed in one row.

The linear layers see all tokens at once (no padding); attention runs for each sequence over its
own contiguous buffers of keys and values. Loading proves that the ragged pass computes what the
model itself computes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from transformers import AttentionInterface, AutoModelForCausalLM, AutoTokenizer

ATTENTION_NAME = "agentc_ragged"


class UnsupportedModelError(ValueError):
    """The model needs something that the ragged pass does not compute."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """Sizes of one token's keys and values: (heads, width) for each layer's key and value."""

    layers: int
    heads: int
    key_width: int
    value_width: int
    dtype: torch.dtype

    @property
    def bytes_per_token(self) -> int:
        per_head = (self.key_width + self.value_width) * int(self.dtype.itemsize)
        return self.layers * self.heads * per_head


@dataclass(slots=True)
class KeyValues:
    """Keys [layers, heads, capacity, key_width] and values of one sequence."""

    keys: Tensor
    values: Tensor

    @classmethod
    def allocate(cls, geometry: Geometry, capacity: int) -> KeyValues:
        shape = (geometry.layers, geometry.heads, capacity)
        return cls(
            torch.empty(*shape, geometry.key_width, dtype=geometry.dtype),
            torch.empty(*shape, geometry.value_width, dtype=geometry.dtype),
        )

    @property
    def capacity(self) -> int:
        return int(self.keys.shape[2])

    def copy_from(self, other: KeyValues, length: int) -> None:
        """Take over the first `length` positions of another sequence."""
        self.keys[:, :, :length] = other.keys[:, :, :length]
        self.values[:, :, :length] = other.values[:, :, :length]


@dataclass(slots=True)
class TokenSegment:
    """`tokens` of one sequence that enter at position `start`; those before are in `store`."""

    store: KeyValues
    start: int
    tokens: Sequence[int]

    @property
    def end(self) -> int:
        return self.start + len(self.tokens)


class Packing:
    """Segments laid end to end, with the views of their buffers that attention needs in each
    layer, made once for the pass."""

    def __init__(self, segments: Sequence[TokenSegment]) -> None:
        self.counts = [len(segment.tokens) for segment in segments]
        self.singles = next((i for i, n in enumerate(self.counts) if n > 1), len(self.counts))
        self.masks = [_causal_mask(segment) for segment in segments]
        self.keys = [s.store.keys[:, None, :, : s.end].unbind(0) for s in segments]
        self.values = [s.store.values[:, None, :, : s.end].unbind(0) for s in segments]
        self.new_keys = [s.store.keys[:, None, :, s.start : s.end].unbind(0) for s in segments]
        self.new_values = [s.store.values[:, None, :, s.start : s.end].unbind(0) for s in segments]

    def store(self, layer: int, key: Tensor, value: Tensor) -> None:
        """Put the new keys and values [1, heads, tokens, width] into their buffers."""
        for places, given in ((self.new_keys, key), (self.new_values, value)):
            targets = [place[layer] for place in places]
            torch._foreach_copy_(targets, given.split(self.counts, dim=2))


@dataclass(slots=True)
class Probe:
    """Stands in for segments while the sizes of a model's keys and values are found out."""

    shapes: dict[int, tuple[int, int, int]]


def forward(model: Any, segments: Sequence[TokenSegment], rows: Tensor | int) -> Tensor:
    """Logits [rows, vocabulary] in float32 of the given rows of the packed tokens (0: all)."""
    ids: list[int] = []
    positions: list[int] = []
    for segment in segments:
        ids.extend(segment.tokens)
        positions.extend(range(segment.start, segment.end))
    output = model(
        input_ids=torch.tensor([ids]),
        position_ids=torch.tensor([positions]),
        use_cache=False,
        logits_to_keep=rows,
        packing=Packing(segments),
    )
    logits: Tensor = output.logits[0]
    return logits.float()


def attend(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    *,
    packing: Packing | Probe | None = None,
    **settings: Any,
) -> tuple[Tensor, None]:
    """Attention in the form that transformers' models call: query [1, heads, tokens, width] in,
    [1, tokens, heads, width] out. Writes the new keys and values into the segments' stores."""
    for name in ("sliding_window", "softcap", "s_aux", "position_bias"):
        if settings.get(name) is not None:
            raise UnsupportedModelError(f"attention with {name} is not supported")
    if packing is None:
        raise UnsupportedModelError("the model does not hand its arguments on to its attention")
    layer = int(module.layer_idx)
    if isinstance(packing, Probe):
        packing.shapes[layer] = (key.shape[1], key.shape[3], value.shape[3])
        return query.new_zeros(1, query.shape[2], query.shape[1], value.shape[3]), None
    packing.store(layer, key, value)
    heads, groups = query.shape[1], query.shape[1] // key.shape[1]
    singles = packing.singles
    # Heads that share keys become rows of one product when each has a single query.
    queries = query[0, :, :singles].transpose(0, 1).unflatten(1, (heads // groups, groups))
    results = [
        functional.scaled_dot_product_attention(
            one[None], packing.keys[i][layer], packing.values[i][layer], scale=scaling
        ).view(1, heads, -1)
        for i, one in enumerate(queries.unbind(0))
    ]
    at = singles
    for i in range(singles, len(packing.counts)):
        count, mask = packing.counts[i], packing.masks[i]
        result = functional.scaled_dot_product_attention(
            query[:, :, at : at + count],
            packing.keys[i][layer],
            packing.values[i][layer],
            attn_mask=mask,
            is_causal=mask is None and count > 1,
            scale=scaling,
            enable_gqa=groups > 1,
        )
        results.append(result[0].transpose(0, 1))
        at += count
    return torch.cat(results)[None], None


def _causal_mask(segment: TokenSegment) -> Tensor | None:
    """None for a single token and for a sequence from its start (plain causal attention)."""
    count = len(segment.tokens)
    if count == 1 or segment.start == 0:
        return None
    allowed = torch.ones(count, segment.end, dtype=torch.bool).tril_(segment.start)
    mask = torch.zeros(count, segment.end, dtype=segment.store.keys.dtype)
    return mask.masked_fill_(~allowed, float("-inf"))[None, None]


DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
_SHORTEST_BOUND = 16
"""Letters that a token is taken to hold at least: normalisation may join or drop some."""
_LOCAL: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
_LOGIT_TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 0.25, torch.float16: 0.05}


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A loaded model. `ends` are the ids that end a reply; `longest_token` is in letters."""

    root: str
    model: Any
    tokenizer: Any
    geometry: Geometry
    vocabulary: int
    longest_token: int
    context: int
    ends: frozenset[int]


def load_checkpoint(path: str, dtype: str) -> Checkpoint:
    """Load a directory in Hugging Face layout.

    Raises ValueError when it holds no causal language model with safetensors weights, and
    UnsupportedModelError when the ragged pass gives other logits than the model's own pass.
    """
    with _named(path) as root:
        model = AutoModelForCausalLM.from_pretrained(
            root,
            dtype=DTYPES[dtype],
            use_safetensors=True,
            attn_implementation="sdpa",
            **_LOCAL,
        )
    tokenizer = load_tokenizer(path)
    model.eval()
    with torch.inference_mode():
        geometry = use_ragged_attention(model)
    return Checkpoint(
        root=str(Path(path).resolve()),
        model=model,
        tokenizer=tokenizer,
        geometry=geometry,
        vocabulary=int(model.get_output_embeddings().weight.shape[0]),
        longest_token=max(_SHORTEST_BOUND, *map(len, tokenizer.get_vocab())),
        context=context_of(model, tokenizer),
        ends=end_tokens(model, tokenizer),
    )


def load_tokenizer(path: str) -> Any:
    """The tokenizer of such a directory. Raises ValueError when it holds none."""
    with _named(path) as root:
        return AutoTokenizer.from_pretrained(root, **_LOCAL)


@contextmanager
def _named(path: str) -> Iterator[str]:
    """Errors of loading as a ValueError that names the directory."""
    if not Path(path, "config.json").is_file():
        raise ValueError(f"{path} holds no config.json: not a model directory")
    try:
        yield path
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"cannot load the model in {path}: {error}") from error


def use_ragged_attention(model: Any) -> Geometry:
    """Switch the model to ragged attention, after a comparison with its own. Raises
    UnsupportedModelError; to be called without gradients."""
    vocabulary = int(model.get_input_embeddings().weight.shape[0])
    ids = [(7 * i * i + 3 * i + 1) % vocabulary for i in range(24)]
    own: Tensor = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0].float()
    AttentionInterface.register(ATTENTION_NAME, attend)
    model.set_attn_implementation(ATTENTION_NAME)
    geometry = _geometry(model)
    ours = _ragged_logits(model, geometry, ids)
    tolerance = _LOGIT_TOLERANCE[geometry.dtype] * max(1.0, float(own.abs().max()))
    difference = float((own - ours).abs().max())
    if not difference <= tolerance:
        raise UnsupportedModelError(
            f"{type(model).__name__} does not compute the same in ragged batches (logits differ "
            f"by {difference:.3g}); serve it with serve.vllm"
        )
    return geometry


def _geometry(model: Any) -> Geometry:
    probe = Probe({})
    model(
        input_ids=torch.tensor([[0, 0]]),
        position_ids=torch.tensor([[0, 1]]),
        use_cache=False,
        packing=probe,
    )
    shapes = set(probe.shapes.values())
    if len(shapes) != 1 or set(probe.shapes) != set(range(len(probe.shapes))):
        raise UnsupportedModelError(
            f"{type(model).__name__} has layers of unlike or no attention; serve it with serve.vllm"
        )
    heads, key_width, value_width = shapes.pop()
    return Geometry(len(probe.shapes), heads, key_width, value_width, model.dtype)


def _ragged_logits(model: Any, geometry: Geometry, ids: list[int]) -> Tensor:
    """All rows of `ids`, computed in three passes of pieces that share them with another
    sequence."""
    store, other = (KeyValues.allocate(geometry, len(ids)) for _ in range(2))
    parts = []
    bounds = (0, 11, len(ids) - 1, len(ids))
    for start, end in pairwise(bounds):
        packed = [
            TokenSegment(other, start, ids[-end:][: end - start]),
            TokenSegment(store, start, ids[start:end]),
        ]
        logits = forward(model, packed, 0)
        parts.append(logits[end - start :])
    return torch.cat(parts)


def context_of(model: Any, tokenizer: Any) -> int:
    """Tokens of a prompt with its reply that the model can read."""
    config = model.config.get_text_config()
    limits = [getattr(config, "max_position_embeddings", None), tokenizer.model_max_length]
    # Tokenizers without a limit report an astronomical one.
    known = [int(limit) for limit in limits if limit is not None and limit < 1 << 30]
    return min(known) if known else 4096


def end_tokens(model: Any, tokenizer: Any) -> frozenset[int]:
    """The tokens that end a reply."""
    given = getattr(model.generation_config, "eos_token_id", None)
    ends = [] if given is None else given if isinstance(given, list) else [given]
    if tokenizer.eos_token_id is not None:
        ends = [*ends, tokenizer.eos_token_id]
    return frozenset(int(end) for end in ends)

"""Loads a checkpoint and proves that the ragged pass computes what the model itself computes.

Neighbours: `ragged.py` (the pass), `engine.py` (the user), `chat_text.py` (messages -> tokens).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface, AutoModelForCausalLM, AutoTokenizer

from agentc_backends.engine.ragged import (
    ATTENTION_NAME,
    Geometry,
    KeyValues,
    Probe,
    TokenSegment,
    UnsupportedModelError,
    attend,
    forward,
)

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
        geometry = take_ragged(model)
    return Checkpoint(
        root=str(Path(path).resolve()),
        model=model,
        tokenizer=tokenizer,
        geometry=geometry,
        vocabulary=int(model.get_output_embeddings().weight.shape[0]),
        longest_token=max(_SHORTEST_BOUND, *map(len, tokenizer.get_vocab())),
        context=context_of(model, tokenizer),
        ends=ends_of(model, tokenizer),
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


def take_ragged(model: Any) -> Geometry:
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


def ends_of(model: Any, tokenizer: Any) -> frozenset[int]:
    """The tokens that end a reply."""
    given = getattr(model.generation_config, "eos_token_id", None)
    ends = [] if given is None else given if isinstance(given, list) else [given]
    if tokenizer.eos_token_id is not None:
        ends = [*ends, tokenizer.eos_token_id]
    return frozenset(int(end) for end in ends)

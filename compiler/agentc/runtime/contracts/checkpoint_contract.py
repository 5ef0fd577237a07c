"""Post-conditions of a Checkpoint, and of encoders of pictures and of texts: the files of a Hugging
Face model directory, weights that parse as safetensors, and nothing that would be unpickled.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agentc.runtime.model_folder.safetensors import read_header

if TYPE_CHECKING:
    from agentc.runtime.contracts.artifacts import Artifact
    from agentc.runtime.contracts.row_contracts import Finding

REQUIRED = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
    "agentc_chat.json",
)
ENCODER_REQUIRED = ("config.json", "preprocessor_config.json")
TEXT_ENCODER_REQUIRED = ("config.json", "tokenizer.json", "tokenizer_config.json")
SCORED = "agentc_log_probs.json"
"""What trainers leave for servers to be compared with; checkpoints may lack it."""
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
PICKLED = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt")


def check_checkpoint(artifact: Artifact) -> Iterator[Finding]:
    """A model directory: configuration, tokenizer, template, and whole safetensors weights.

    `contract.optional_files` names required files that this checkpoint may lack.
    """
    optional = set(artifact.contract.get("optional_files", ()))
    for name in REQUIRED:
        path = artifact.data / name
        if not path.is_file():
            if name not in optional:
                yield (name, None, None, "the file is missing")
        elif path.suffix == ".json":
            yield from _json_findings(path)
    if (artifact.data / SCORED).is_file():
        yield from _scored_findings(artifact.data / SCORED)
    yield from _weight_findings(artifact.data)


def check_encoder(artifact: Artifact) -> Iterator[Finding]:
    """A model of pictures: configuration, how it wants them, and whole safetensors weights."""
    yield from _encoder_findings(artifact, ENCODER_REQUIRED)


def check_text_encoder(artifact: Artifact) -> Iterator[Finding]:
    """A model of texts: configuration, tokenizer, and whole safetensors weights."""
    yield from _encoder_findings(artifact, TEXT_ENCODER_REQUIRED)


def _encoder_findings(artifact: Artifact, required: Sequence[str]) -> Iterator[Finding]:
    for name in required:
        if (artifact.data / name).is_file():
            yield from _json_findings(artifact.data / name)
        else:
            yield (name, None, None, "the file is missing")
    yield from _weight_findings(artifact.data)


def _weight_findings(data: Path) -> Iterator[Finding]:
    for path in sorted(data.rglob("*")):
        if path.suffix in PICKLED:
            name = str(path.relative_to(data))
            yield (name, None, None, "pickled files are refused; write safetensors")
    index = data / INDEX
    if index.is_file():
        try:
            placed: dict[str, str] = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            yield (INDEX, None, "weight_map", f"cannot be read: {error}")
            return
        shards: list[str] = sorted(set(placed.values()))
    elif (data / WEIGHTS).is_file():
        placed, shards = {}, [WEIGHTS]
    else:
        yield (WEIGHTS, None, None, f"the file is missing (and so is {INDEX})")
        return
    for shard in shards:
        path = data / shard
        if not path.is_file():
            yield (shard, None, None, "the file is missing; the index names it")
            continue
        try:
            tensors: set[str] = set(read_header(path))
        except ValueError as error:
            yield (shard, None, None, f"not a whole safetensors file: it {error}")
            continue
        if not tensors:
            yield (shard, None, None, "holds no tensor")
        missing = sorted(t for t, where in placed.items() if where == shard and t not in tensors)
        if missing:
            yield (shard, None, None, f"lacks tensors that the index places in it: {missing[:5]}")


def _scored_findings(path: Path) -> Iterator[Finding]:
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
        uneven = [n for n, row in enumerate(rows) if len(row["ids"]) != len(row["log_probs"])]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        yield (path.name, None, "rows", f"cannot be read: {error}")
        return
    for number in uneven:
        yield (path.name, None, "rows", f"row {number} has not one log-probability a token")


def _json_findings(path: Path) -> Iterator[Finding]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        yield (path.name, None, None, f"not JSON: {error}")
        return
    if path.name == "agentc_chat.json" and not (
        isinstance(value, dict) and isinstance(value.get("chat_format"), str)
    ):
        yield (path.name, None, "chat_format", "expected the name of a chat format")

"""Post-conditions of a Checkpoint, and of encoders of pictures and of texts: the files of a Hugging
Face model directory, weights that parse as safetensors, and nothing that would be unpickled.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Sequence, Set

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
_LONGEST_HEADER = 100 * 1024 * 1024
_BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "I16": 16, "U16": 16, "F16": 16,
    "BF16": 16, "I32": 32, "U32": 32, "F32": 32, "I64": 64, "U64": 64, "F64": 64,
}  # fmt: skip


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


def read_header(path: Path) -> Dict[str, Any]:
    """Tensors of a safetensors file: name -> {dtype, shape, data_offsets}.

    Raises ValueError when the file is cut off or is no safetensors file.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(8)
        if len(start) < 8:
            raise ValueError("shorter than a header")
        (length,) = struct.unpack("<Q", start)
        if length > min(size - 8, _LONGEST_HEADER):
            raise ValueError("the header claims %d bytes of %d" % (length, size))
        header = json.loads(file.read(length).decode("utf-8"))
    if not isinstance(header, dict):
        raise ValueError("the header is not an object")
    header.pop("__metadata__", None)
    end = 0
    for name, tensor in header.items():
        begin, stop = tensor["data_offsets"]
        count = 1
        for dimension in tensor["shape"]:
            count *= dimension
        bits = _BITS.get(tensor["dtype"])
        if bits is not None and (stop - begin) * 8 != count * bits:
            raise ValueError("tensor %s holds %d bytes for its shape" % (name, stop - begin))
        end = max(end, stop)
    if 8 + length + end != size:
        raise ValueError("%d bytes; the header describes %d" % (size, 8 + length + end))
    return header


def _weight_findings(data: Path) -> Iterator[Finding]:
    for path in sorted(data.rglob("*")):
        if path.suffix in PICKLED:
            name = str(path.relative_to(data))
            yield (name, None, None, "pickled files are refused; write safetensors")
    index = data / INDEX
    if index.is_file():
        try:
            placed: Dict[str, str] = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            yield (INDEX, None, "weight_map", "cannot be read: %s" % error)
            return
        shards: List[str] = sorted(set(placed.values()))
    elif (data / WEIGHTS).is_file():
        placed, shards = {}, [WEIGHTS]
    else:
        yield (WEIGHTS, None, None, "the file is missing (and so is %s)" % INDEX)
        return
    for shard in shards:
        path = data / shard
        if not path.is_file():
            yield (shard, None, None, "the file is missing; the index names it")
            continue
        try:
            tensors: Set[str] = set(read_header(path))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            yield (shard, None, None, "not a whole safetensors file: %s" % error)
            continue
        if not tensors:
            yield (shard, None, None, "holds no tensor")
        missing = sorted(t for t, where in placed.items() if where == shard and t not in tensors)
        if missing:
            yield (shard, None, None, "lacks tensors that the index places in it: %s" % missing[:5])


def _scored_findings(path: Path) -> Iterator[Finding]:
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
        uneven = [n for n, row in enumerate(rows) if len(row["ids"]) != len(row["log_probs"])]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        yield (path.name, None, "rows", "cannot be read: %s" % error)
        return
    for number in uneven:
        yield (path.name, None, "rows", "row %d has not one log-probability a token" % number)


def _json_findings(path: Path) -> Iterator[Finding]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        yield (path.name, None, None, "not JSON: %s" % error)
        return
    if path.name == "agentc_chat.json" and not (
        isinstance(value, dict) and isinstance(value.get("chat_format"), str)
    ):
        yield (path.name, None, "chat_format", "expected the name of a chat format")

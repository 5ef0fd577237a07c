"""Which safetensors files of a directory hold the weights, and what their headers and the index
say of the tensors."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentc.runtime.model_folder.folder_fault import FolderFault, shortened
from agentc.runtime.model_folder.safetensors import HeaderError, Tensor, read_header

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
GGUF = ".gguf"
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".h5", ".msgpack", ".npz")
"""Formats of weights that can run code when they are read, or that transformers 5 does not read."""
_LARGEST_INDEX = 1 << 26
_SHARD = re.compile(r"-\d{5}-of-\d{5}\.safetensors$")
_COPY_AGAIN = "copy or download the file again"
_FETCH_LFS = "fetch the files with `git lfs pull`, or download the model with the hub's client"


@dataclass(frozen=True)
class Weights:
    """`tensors` by name, and the bytes of their files; both empty where there are faults."""

    faults: tuple[FolderFault, ...] = ()
    tensors: Mapping[str, Tensor] = field(default_factory=dict)
    file_bytes: int = 0


def read_weights(directory: Path, names: Collection[str], shown: str) -> Weights:
    """The weights of a directory with these files; `shown` is its name in messages."""
    if SINGLE in names and INDEX not in names:
        return _read_files(directory, {SINGLE: None}, shown)
    if INDEX in names:
        return _read_indexed(directory, names, shown)
    return Weights(faults=(_without_weights(names, shown),))


def _read_indexed(directory: Path, names: Collection[str], shown: str) -> Weights:
    again = "save the model again with `save_pretrained`, or download it again"
    try:
        with (directory / INDEX).open("rb") as file:
            content = file.read(_LARGEST_INDEX)
        found: Any = json.loads(content)
    except (ValueError, RecursionError):
        return Weights(faults=(FolderFault(f"{shown}: {INDEX} is no JSON", again),))
    placed = found.get("weight_map") if isinstance(found, dict) else None
    if not isinstance(placed, dict) or not placed or not _texts(placed.values()):
        fault = FolderFault(f"{shown}: {INDEX} does not say which file holds which tensor", again)
        return Weights(faults=(fault,))
    if SINGLE in names and SINGLE not in placed.values():
        message = f"{shown} holds {SINGLE} and {INDEX}, which name different weights"
        return Weights(faults=(FolderFault(message, "remove the one that is not meant"),))
    expected: dict[str, Any] = {}
    for tensor, file_name in placed.items():
        expected.setdefault(file_name, set()).add(tensor)
    missing = sorted(name for name in expected if name not in names)
    if missing:
        message = f"{shown} lacks {shortened(missing)}, which {INDEX} names"
        return Weights(
            faults=(FolderFault(message, _COPY_AGAIN.replace("the file", "what is missing")),)
        )
    return _read_files(directory, expected, shown)


def _read_files(directory: Path, expected: Mapping[str, Any], shown: str) -> Weights:
    faults: list[FolderFault] = []
    tensors: dict[str, Tensor] = {}
    holders: dict[str, str] = {}
    total = 0
    for name in sorted(expected):
        try:
            found = read_header(directory / name)
        except HeaderError as error:
            fix = _FETCH_LFS if "Git LFS" in str(error) else _COPY_AGAIN
            faults.append(FolderFault(f"{shown}: {name} {error}", fix))
            continue
        total += (directory / name).stat().st_size
        lacking = sorted((expected[name] or set()) - set(found))
        if lacking:
            message = "%s: %s lacks %s, which %s places there"
            message %= (shown, name, shortened(lacking), INDEX)
            faults.append(FolderFault(message, _COPY_AGAIN))
        for tensor in found:
            if tensor in holders:
                message = f"{shown}: {holders[tensor]} and {name} both hold {tensor}"
                fix = "save the model again with `save_pretrained` into an empty directory"
                faults.append(FolderFault(message, fix))
                break
            holders[tensor] = name
        tensors.update(found)
    if not faults and not tensors:
        faults.append(FolderFault(f"{shown}: its safetensors files hold no tensor", _COPY_AGAIN))
    return Weights(tuple(faults)) if faults else Weights((), tensors, total)


def _without_weights(names: Collection[str], shown: str) -> FolderFault:
    """Why a directory has no weights that can be read."""
    own = sorted(n for n in names if n.endswith(".safetensors") and not n.startswith("adapter_"))
    if any(_SHARD.search(name) for name in own):
        return FolderFault(
            f"{shown} holds {shortened(own)} without {INDEX}, which says where each tensor is",
            "copy or download the index too",
        )
    if own:
        return FolderFault(
            f"{shown} has no {SINGLE}; transformers does not read {shortened(own)}",
            "load the model and save it again with `save_pretrained`",
        )
    others = [n for n in sorted(names) if n.lower().endswith(GGUF)]
    if others:
        return gguf_fault(f"{shown} holds {shortened(others)}")
    pickled = [name for name in sorted(names) if name.lower().endswith(PICKLES)]
    if pickled:
        return FolderFault(
            f"{shown} has no .safetensors weights (found {shortened(pickled)}, which can run "
            "code when read)",
            "load the model where you trust it, and save it with `save_pretrained`, which writes "
            "safetensors",
        )
    return FolderFault(
        f"{shown} has no weights: there is no {SINGLE} in it",
        "copy or download the weights too",
    )


def gguf_fault(what: str) -> FolderFault:
    """The weights are in a format of llama.cpp; `what` is the beginning of the message."""
    return FolderFault(
        f"{what}: GGUF weights, which are quantised for llama.cpp, cannot be read",
        "give a directory with the model's safetensors weights, such as the repository that the "
        "GGUF file was made from",
    )


def _texts(values: Any) -> bool:
    """Whether all are names of files of the directory itself."""
    return all(isinstance(each, str) and "/" not in each and "\\" not in each for each in values)

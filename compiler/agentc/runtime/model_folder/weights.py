"""Weights of a model directory: headers of safetensors files, the files that an index names, and
tensors that transformers would not load as they are meant.

Types and shapes are read, values never.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from agentc.runtime.model_folder.config import ConfiguredSizes, FolderFault, shortened

_LARGEST_HEADER = 1 << 25
_LFS = b"version https://git-lfs"
_BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "U16": 16, "I16": 16,
    "F16": 16, "BF16": 16, "U32": 32, "I32": 32, "F32": 32, "U64": 64, "I64": 64, "F64": 64,
    "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "C64": 64,
}  # fmt: skip


class HeaderError(ValueError):
    """A file whose header does not describe it; the message follows the file's name."""


class Tensor(NamedTuple):  # a job's wrapper imports this: dataclasses would cost it 5 ms
    """The type and the shape of a tensor."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def numbers(self) -> int:
        """How many numbers it has."""
        count = 1
        for size in self.shape:
            count *= size
        return count

    @property
    def bits(self) -> int | None:
        """Of each number; None of a type that is not known."""
        return _BITS.get(self.dtype)


def read_header(path: Path) -> dict[str, Tensor]:
    """The tensors of a file by name. Raises HeaderError, OSError."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        start = file.read(len(_LFS))
        if start.startswith(_LFS):
            raise HeaderError("is a pointer of Git LFS, not the weights")
        if len(start) < 9:
            raise HeaderError("is empty" if not start else "is shorter than a header")
        length = int.from_bytes(start[:8], "little")
        if length > _LARGEST_HEADER or start[8:9] != b"{":
            raise HeaderError(f"is no safetensors file: the header claims {length} bytes")
        if 8 + length > size:
            raise HeaderError("is truncated: it ends within its header")
        file.seek(8)
        content = file.read(length)
    try:
        header = json.loads(content)
    except (ValueError, RecursionError):
        raise HeaderError("has a header that is no JSON") from None
    if not isinstance(header, dict):
        raise HeaderError("has a header without tensors")
    header.pop("__metadata__", None)
    tensors: dict[str, Tensor] = {}
    places: list[tuple[int, int, str]] = []
    for name, entry in header.items():
        tensors[name], begin, last = _tensor(name, entry)
        places.append((begin, last, name))
    end = 0
    for begin, last, name in sorted(places):
        if begin != end:
            what = "overlaps with" if begin < end else "leaves a gap behind"
            raise HeaderError(f"has a header whose tensor {name[:200]} {what} another")
        end = last
    whole = 8 + length + end
    if size < whole:
        raise HeaderError(f"is truncated: it has {size} of {whole} bytes")
    if size > whole:
        raise HeaderError(f"has {size} bytes, but its header describes {whole}")
    return tensors


def _tensor(name: str, entry: Any) -> tuple[Tensor, int, int]:
    """A tensor, and where its values begin and end."""
    wrong = HeaderError(f"has a header that does not describe the tensor {name[:200]}")
    if not isinstance(entry, dict):
        raise wrong
    dtype: Any = entry.get("dtype")
    shape, offsets = _sizes(entry.get("shape")), _sizes(entry.get("data_offsets"))
    if not isinstance(dtype, str) or shape is None or offsets is None or len(offsets) != 2:
        raise wrong
    tensor = Tensor(dtype, shape)
    if tensor.bits is None:
        raise HeaderError(f"has the tensor {name[:200]} of an unknown type, {dtype[:40]}")
    begin, end = offsets
    bits = tensor.bits
    if end < begin or (bits is not None and (tensor.numbers * bits + 7) // 8 != end - begin):
        raise wrong
    return tensor, begin, end


def _sizes(value: Any) -> tuple[int, ...] | None:
    if isinstance(value, list) and all(
        isinstance(each, int) and not isinstance(each, bool) and each >= 0 for each in value
    ):
        return tuple(value)
    return None


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
        f"{what}: `backend: path` takes safetensors weights, not GGUF files of llama.cpp",
        "use `backend: gguf` with the path of the .gguf file, which converts it; or give the "
        "folder that the file was made from",
    )


def _texts(values: Any) -> bool:
    """Whether all are names of files of the directory itself."""
    return all(isinstance(each, str) and "/" not in each and "\\" not in each for each in values)


_WRAPPERS = (
    ("_orig_mod.", "`torch.compile`"),
    ("_fsdp_wrapped_module.", "FSDP"),
    ("module.", "DistributedDataParallel or DeepSpeed"),
    ("base_model.model.", "PEFT"),
)
"""What training libraries write before the names of a model's tensors."""
_ADAPTERS = (".lora_A.", ".lora_B.", ".base_layer.", ".modules_to_save.")
_INTEGERS = ("BOOL", "U8", "I8", "U16", "I16", "U32", "I32", "U64", "I64")
_SMALL = ("F8_E4M3", "F8_E5M2", "F8_E8M0", "F4", "F6_E2M3", "F6_E3M2")


def tensor_fault(
    tensors: Mapping[str, Tensor],
    sizes: ConfiguredSizes | None,
    quantisation: str,
    shown: str,
) -> FolderFault | None:
    """The first reason why these tensors are not the model of config.json; `sizes` None where its
    type is not known here."""
    adapters = sorted(n for n in tensors if any(part in "." + n for part in _ADAPTERS))
    if adapters:
        return FolderFault(
            f"{shown}: the weights hold an adapter that was not merged "
            f"({shortened(adapters)}), which would be ignored",
            "merge it with PEFT's `merge_and_unload()` before `save_pretrained`",
        )
    for prefix, library in _WRAPPERS:
        if tensors and all(name.startswith(prefix) for name in tensors):
            return FolderFault(
                f"{shown}: the names of all tensors begin with `{prefix}`, as {library} writes "
                "them; transformers "
                "would initialise every weight at random",
                "save the model that the wrapper holds, or remove the prefix from the names",
            )
    if quantisation:
        return None
    packed = sorted(
        name
        for name, tensor in tensors.items()
        if name.endswith(".weight") and tensor.dtype in _INTEGERS + _SMALL
    )
    if packed:
        return FolderFault(
            f"{shown}: the weights are quantised ({packed[0][:120]} is "
            f"{tensors[packed[0]].dtype}), and config.json has no "
            "`quantization_config`",
            "give the model that was quantised, or the config.json of the quantised one",
        )
    return None if sizes is None else _size_fault(tensors, sizes, shown)


def _size_fault(
    tensors: Mapping[str, Tensor], sizes: ConfiguredSizes, shown: str
) -> FolderFault | None:
    """Where tensors differ from those that config.json describes."""
    # A model that was saved without its head has the same names without `model.`.
    begins = "model." if any(name.startswith("model.") for name in tensors) else ""
    expected = {begins + name: shape for name, shape in _shapes(sizes).items()}
    expected["lm_head.weight"] = (sizes.vocabulary, sizes.hidden)
    differing = [n for n, s in expected.items() if n in tensors and tensors[n].shape != s]
    if differing:
        name = differing[0]
        return FolderFault(
            f"{shown}: {name} is {_product(tensors[name].shape)}, config.json describes "
            f"{_product(expected[name])}",
            "copy or download config.json and the weights from one place again",
        )
    lacking = [name for name in expected if name not in tensors and name != "lm_head.weight"]
    # Of names that are all of another kind, such as a converter's, nothing is known here.
    if lacking and not tensors.keys().isdisjoint(expected):
        return FolderFault(
            f"{shown}: the weights lack {shortened(lacking)}; they would be initialised at random",
            "copy or download the weights again",
        )
    above = f"{begins}layers.{sizes.layers}."
    if any(name.startswith(above) for name in tensors):
        return FolderFault(
            "%s: the weights have more layers than the %d of config.json; the others would be "
            "ignored" % (shown, sizes.layers),
            "copy or download config.json and the weights from one place again",
        )
    return None


def _shapes(sizes: ConfiguredSizes) -> dict[str, tuple[int, ...]]:
    """The tensors of Llama, Mistral and Qwen2 without the output embeddings."""
    hidden, inner = sizes.hidden, sizes.intermediate
    query, key = sizes.heads * sizes.head_size, sizes.kv_heads * sizes.head_size
    block: dict[str, tuple[int, ...]] = {
        "self_attn.q_proj.weight": (query, hidden),
        "self_attn.k_proj.weight": (key, hidden),
        "self_attn.v_proj.weight": (key, hidden),
        "self_attn.o_proj.weight": (hidden, query),
        "mlp.gate_proj.weight": (inner, hidden),
        "mlp.up_proj.weight": (inner, hidden),
        "mlp.down_proj.weight": (hidden, inner),
        "input_layernorm.weight": (hidden,),
        "post_attention_layernorm.weight": (hidden,),
    }
    if sizes.biased:
        block["self_attn.q_proj.bias"] = (query,)
        block["self_attn.k_proj.bias"] = block["self_attn.v_proj.bias"] = (key,)
    shapes: dict[str, tuple[int, ...]] = {"embed_tokens.weight": (sizes.vocabulary, hidden)}
    # More layers than any model has would only cost time.
    for number in range(min(sizes.layers, 1000)):
        shapes.update((f"layers.{number}.{name}", each) for name, each in block.items())
    return {**shapes, "norm.weight": (hidden,)}


def _product(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape)) if shape else "a single number"

"""read_gguf_header: the settings of a GGUF file, and the types and shapes of its tensors.

Values of tensors are never read. The layout is that of ggml's docs/gguf.md, versions 2 and 3.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_MOST_SETTINGS, _MOST_TENSORS = 10_000, 100_000
_NUMBERS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q",
            11: "<q", 12: "<d"}  # fmt: skip
_STRING, _ARRAY = 8, 9
_ALIGNMENT = "general.alignment"

TYPES = {
    0: ("F32", 1, 4), 1: ("F16", 1, 2), 2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20),
    6: ("Q5_0", 32, 22), 7: ("Q5_1", 32, 24), 8: ("Q8_0", 32, 34), 9: ("Q8_1", 32, 40),
    10: ("Q2_K", 256, 84), 11: ("Q3_K", 256, 110), 12: ("Q4_K", 256, 144), 13: ("Q5_K", 256, 176),
    14: ("Q6_K", 256, 210), 15: ("Q8_K", 256, 292), 16: ("IQ2_XXS", 256, 66),
    17: ("IQ2_XS", 256, 74), 18: ("IQ3_XXS", 256, 98), 19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18), 21: ("IQ3_S", 256, 110), 22: ("IQ2_S", 256, 82),
    23: ("IQ4_XS", 256, 136), 24: ("I8", 1, 1), 25: ("I16", 1, 2), 26: ("I32", 1, 4),
    27: ("I64", 1, 8), 28: ("F64", 1, 8), 29: ("IQ1_M", 256, 56), 30: ("BF16", 1, 2),
    34: ("TQ1_0", 256, 54), 35: ("TQ2_0", 256, 66), 39: ("MXFP4", 32, 17),
}  # fmt: skip
"""Types of tensors by number: name, weights of a block, and its bytes."""

_OTHERS: tuple[tuple[bytes, str], ...] = (
    (b"version https://git-lfs", "is a pointer of Git LFS, not the weights"),
    (b"PK\x03\x04", "is a PyTorch file (a zip of pickles), which can run code when read, not GGUF"),
    (b"\x80", "is a pickle, which can run code when read, not GGUF"),
    (b"tjgg", "is in GGJT, a format before GGUF"),
    (b"lmgg", "is in GGML, a format before GGUF"),
    (b"fmgg", "is in GGMF, a format before GGUF"),
)
"""How other files begin that have the ending .gguf."""


class GgufError(ValueError):
    """A file that cannot be used; the message follows the file's name."""


class GgufTensor(NamedTuple):
    """`shape` is rows first, as in PyTorch. `type` is one of the names in TYPES."""

    name: str
    type: str
    shape: tuple[int, ...]

    @property
    def numbers(self) -> int:
        """How many weights it has."""
        count = 1
        for size in self.shape:
            count *= size
        return count


@dataclass(frozen=True)
class GgufHeader:
    """Settings by name (`general.architecture`), and tensors in the order of the file."""

    settings: Mapping[str, Any]
    tensors: tuple[GgufTensor, ...]
    file_bytes: int


def read_gguf_header(path: Path) -> GgufHeader:
    """The header of a file that is whole. Raises GgufError, OSError."""
    with path.open("rb") as file:
        start = file.read(64)
        if not start:
            raise GgufError("is empty")
        if start[:4] != _MAGIC:
            raise GgufError(_other_format(start))
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            try:
                return _read(content)
            except (struct.error, IndexError):
                raise GgufError("is truncated: it ends within its header") from None


def _other_format(start: bytes) -> str:
    for beginning, message in _OTHERS:
        if start.startswith(beginning):
            return message
    if start[8:9] == b"{":
        return "is a safetensors file, not GGUF: give the folder that it is in to `backend: path`"
    return "is not a GGUF file: it does not begin with GGUF"


class _Cursor:
    """Reads values one after the other."""

    def __init__(self, content: mmap.mmap) -> None:
        self.content = content
        self.place = 4

    def number(self, layout: str) -> Any:
        (value,) = struct.unpack_from(layout, self.content, self.place)
        self.place += struct.calcsize(layout)
        return value

    def text(self) -> str:
        length = self.number("<Q")
        end = self.place + length
        if end > len(self.content):
            raise IndexError
        value = self.content[self.place : end]
        self.place = end
        return value.decode("utf-8", "replace")

    def value(self, kind: int, nested: bool = False) -> Any:
        if kind == _STRING:
            return self.text()
        if kind == _ARRAY and not nested:
            inner, count = self.number("<I"), self.number("<Q")
            return self.array(inner, count)
        if kind not in _NUMBERS:
            raise GgufError(f"has a setting of the unknown type {kind}")
        return self.number(_NUMBERS[kind])

    def array(self, kind: int, count: int) -> list[Any]:
        if count > len(self.content) - self.place:
            raise IndexError
        if kind not in _NUMBERS:
            return [self.value(kind, nested=True) for _ in range(count)]
        layout = f"<{count}{_NUMBERS[kind][1]}"
        values = struct.unpack_from(layout, self.content, self.place)
        self.place += struct.calcsize(layout)
        return list(values)


def _read(content: mmap.mmap) -> GgufHeader:
    cursor = _Cursor(content)
    version = cursor.number("<I")
    if version not in _VERSIONS:
        raise GgufError(
            "was written for big-endian machines"
            if version & 0xFFFF == 0
            else f"has the GGUF version {version}; versions 2 and 3 can be read"
        )
    tensors, settings = cursor.number("<Q"), cursor.number("<Q")
    if tensors > _MOST_TENSORS or settings > _MOST_SETTINGS:
        raise GgufError(f"claims {tensors} tensors and {settings} settings, which no model has")
    values: dict[str, Any] = {}
    for _ in range(settings):
        name = cursor.text()
        values[name] = cursor.value(cursor.number("<I"))
    found: list[GgufTensor] = []
    ends: list[int] = []
    for _ in range(tensors):
        tensor, end = _tensor(cursor)
        found.append(tensor)
        ends.append(end)
    if len({tensor.name for tensor in found}) < len(found):
        raise GgufError("holds two tensors of one name")
    alignment = values.get(_ALIGNMENT, 32)
    if not isinstance(alignment, int) or alignment < 1:
        raise GgufError(f"has the `{_ALIGNMENT}` {alignment!r}")
    data = -(-cursor.place // alignment) * alignment
    whole = data + max(ends, default=0)
    if len(content) < whole:
        raise GgufError(f"is truncated: it has {len(content)} of {whole} bytes")
    return GgufHeader(values, tuple(found), len(content))


def _tensor(cursor: _Cursor) -> tuple[GgufTensor, int]:
    """A tensor, and where its values end within the data."""
    name = cursor.text()
    dimensions = cursor.number("<I")
    if dimensions > 4:
        raise GgufError(f"has the tensor {name[:120]} of {dimensions} dimensions")
    sizes = cursor.array(10, dimensions)
    kind, offset = cursor.number("<I"), cursor.number("<Q")
    if kind not in TYPES:
        raise GgufError(f"has the tensor {name[:120]} of the unknown type {kind}")
    title, block, size = TYPES[kind]
    tensor = GgufTensor(name, title, tuple(reversed(sizes)))
    if sizes and sizes[0] % block:
        raise GgufError(f"has the tensor {name[:120]} whose rows are no whole blocks of {title}")
    return tensor, offset + tensor.numbers // block * size

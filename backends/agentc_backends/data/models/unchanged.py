"""Whether a checkpoint has the weights of the model that it was trained from: their bytes compared
tensor by tensor, up to the first that differs. Standard library only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PIECE = 4 << 20
_MOST_HEADER = 100 << 20


@dataclass(frozen=True, slots=True)
class _Tensor:
    path: Path
    start: int
    size: int
    kind: tuple[str, tuple[int, ...]]
    """Its type and shape."""


def is_unchanged(trained: Path, start: Path) -> bool | None:
    """Whether every tensor that both checkpoints hold is the same in both; None where that cannot
    be compared: other files than safetensors, other types or names."""
    try:
        ours, theirs = _tensors(trained), _tensors(start)
        names = sorted(ours.keys() & theirs.keys())
        if not names or any(ours[name].kind != theirs[name].kind for name in names):
            return None
        return all(_same(ours[name], theirs[name]) for name in names)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _tensors(folder: Path) -> dict[str, _Tensor]:
    return dict(entry for path in sorted(folder.glob("*.safetensors")) for entry in _header(path))


def _header(path: Path) -> Iterator[tuple[str, _Tensor]]:
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > _MOST_HEADER:
            raise ValueError(f"{path.name}: no safetensors")
        header = json.loads(file.read(length))
    for name, entry in header.items():
        if name != "__metadata__":
            start, end = entry["data_offsets"]
            kind = (str(entry["dtype"]), tuple(entry["shape"]))
            yield name, _Tensor(path, 8 + length + start, end - start, kind)


def _same(one: _Tensor, other: _Tensor) -> bool:
    with one.path.open("rb") as first, other.path.open("rb") as second:
        first.seek(one.start)
        second.seek(other.start)
        left = one.size
        while left > 0:
            size = min(_PIECE, left)
            if first.read(size) != second.read(size):
                return False
            left -= size
    return True

"""Reads the rows of runs from W&B's own files, `run-<id>.wandb`: the framing of LevelDB's logs
(https://github.com/google/leveldb/blob/main/doc/log_format.md) after seven bytes of its own, with
W&B's protocol buffers in it. Its Python package has no reader of them any more.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_BLOCK = 32768
_HEADER = struct.Struct("<IHB")
_OWN = 7
"""Bytes before the first record: W&B's mark and version."""
_WHOLE, _LAST = 1, 4


@dataclass(frozen=True, slots=True)
class WrittenRun:
    """What was logged to a run: its rows, numbers by name, and the last value of each summary.
    What W&B adds (`_step`, `_timestamp`, ...) is left out."""

    rows: list[dict[str, Any]]
    summary: dict[str, Any]


def read_run(folder: Path, run: str) -> WrittenRun:
    """From the files of all processes that wrote to it, in their order."""
    from wandb.proto.wandb_internal_pb2 import Record

    found = WrittenRun([], {})
    for path in sorted(folder.glob(f"*run-*-{run}/run-{run}.wandb")):
        for text in records(path.read_bytes()):
            record = Record()
            record.ParseFromString(text)
            kind = record.WhichOneof("record_type")
            if kind == "history":
                found.rows.append(_values(record.history.item))
            elif kind == "summary":
                found.summary.update(_values(record.summary.update))
    return found


def _values(items: Iterable[Any]) -> dict[str, Any]:
    named = ((item.key or "/".join(item.nested_key), item.value_json) for item in items)
    return {name: json.loads(value) for name, value in named if not name.startswith("_")}


def records(data: bytes) -> Iterator[bytes]:
    """The records of a file; one that was being written when its process was killed is left out."""
    at, held = _OWN, b""
    while at + _HEADER.size <= len(data):
        room = _BLOCK - at % _BLOCK
        if room < _HEADER.size:
            at += room  # a block's last bytes hold no header
            continue
        _, size, kind = _HEADER.unpack_from(data, at)
        at += _HEADER.size
        if at + size > len(data):
            return
        held += data[at : at + size]
        at += size
        if kind in (_WHOLE, _LAST):
            yield held
            held = b""

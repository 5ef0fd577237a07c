"""The program of W&B: several runs at once in one process, offline unless the settings say so.

What an earlier process has written of a run is read from W&B's own files, `run-<id>.wandb`: the
framing of LevelDB's logs (https://github.com/google/leveldb/blob/main/doc/log_format.md) after
seven bytes of its own, with W&B's protocol buffers in it. Its Python package has no reader of them
any more."""

from __future__ import annotations

import json
import os
import struct
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentc.runtime.tracking import program
from agentc.runtime.tracking.sink import HeldSteps, TrackedRun

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


_STEP = "step"
"""The axis of charts. W&B's own steps count rows and never go back; ours may."""


class WandbSink:
    """A run begins with its first point: W&B makes a folder of files each time. It numbers rows
    by `rows`, which counts those of earlier files, too."""

    def __init__(self, wandb: Any, folder: Path, settings: Mapping[str, Any]) -> None:
        self._wandb, self._folder = wandb, folder
        self._mode = str(settings.get("mode") or "offline")
        self._entity = settings.get("entity")
        self._runs: dict[str, Any] = {}
        self._rows: dict[str, int] = {}
        self._before: dict[str, WrittenRun] = {}

    def open(self, run: TrackedRun) -> HeldSteps:
        held: HeldSteps = {}
        before = self._before[run.id] = read_run(self._folder / "wandb", run.id)
        for row in before.rows:
            for name in row.keys() - {_STEP}:
                held.setdefault(name, set()).add(int(row[_STEP]))
        self._rows[run.id] = len(before.rows)
        return held

    def log(self, run: TrackedRun, step: int, numbers: Mapping[str, float]) -> None:
        self._started_run(run).log({**numbers, _STEP: step}, step=self._rows[run.id])
        self._rows[run.id] += 1

    def send_text(self, run: TrackedRun, title: str, text: str, words: Mapping[str, str]) -> None:
        summary = self._before[run.id].summary
        for name, word in words.items():
            key = f"{title}/{name}/verdict"
            if summary.get(key) != word:
                self._started_run(run).summary[key] = word

    def finish(self, run: TrackedRun) -> None:
        made = self._runs.pop(run.id, None)
        if made is not None:
            made.finish()

    def flush(self) -> None:
        """Its own process writes as it goes."""

    def close(self) -> None:
        for made in self._runs.values():
            made.finish()

    def _started_run(self, run: TrackedRun) -> Any:
        if run.id in self._runs:
            return self._runs[run.id]
        quiet = {"console": "off", "silent": True, "x_disable_stats": True, "x_disable_meta": True}
        made = self._wandb.init(
            project=run.project,
            entity=self._entity,
            id=run.id,
            name=run.name,
            group=run.group,
            job_type=run.kind,
            tags=list(run.tags),
            config=dict(run.config),
            dir=str(self._folder),
            mode=self._mode,
            reinit="create_new",
            resume="allow",
            settings=self._wandb.Settings(**quiet),
        )
        made.define_metric("*", step_metric=_STEP)
        self._runs[run.id] = made
        return made


def make_sink(
    settings: Mapping[str, Any], folder: Path, report: Callable[[str], None]
) -> WandbSink:
    """In the folder of the settings, else in the tracker's own."""
    place = Path(settings.get("dir") or folder).absolute()
    place.mkdir(parents=True, exist_ok=True)
    if settings.get("url"):
        os.environ["WANDB_BASE_URL"] = str(settings["url"])
    # No question is asked of a process without a terminal, and nothing is told of its crashes.
    os.environ.update(WANDB_SILENT="true", WANDB_ERROR_REPORTING="false")
    import wandb

    if settings.get("mode") == "online":
        report(f"project {settings['project']} of W&B has it; a copy is in {place}/wandb")
    else:
        command = Path(sys.prefix) / "bin" / "wandb"
        report(f"`{command} sync {place}/wandb/offline-run-*` sends it")
    return WandbSink(wandb, place, settings)


if __name__ == "__main__":
    sys.exit(program.main(make_sink))

"""The program of TensorBoard: event files by its own writer; neither TensorFlow nor torch."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agentc.runtime.tracking import program
from agentc.runtime.tracking.sink import HeldSteps, TrackedRun

_CONFIG = "config"
_UNSAFE = re.compile(r"[^A-Za-z0-9._@=,+~/-]")


class TensorBoardSink:
    """A folder for each run: `<label>/<job>`, in one of the project where it has a name of its
    own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writers: dict[str, Any] = {}
        self._texts: dict[str, dict[str, str]] = {}

    def open(self, run: TrackedRun) -> HeldSteps:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        folder = self._place(run)
        held: HeldSteps = {}
        texts = self._texts[run.id] = {}
        if folder.is_dir():
            # Nothing is thinned out, and a step that goes back is none of a crash.
            read = EventAccumulator(
                str(folder), {"scalars": 0, "tensors": 0}, purge_orphaned_data=False
            ).Reload()
            for tag in read.Tags()["scalars"]:
                held[tag] = {event.step for event in read.Scalars(tag)}
            for tag in read.Tags()["tensors"]:
                last = read.Tensors(tag)[-1].tensor_proto
                texts[tag] = last.string_val[0].decode("utf-8") if last.string_val else ""
        self._text(run, _CONFIG, _table(run))
        return held

    def log(self, run: TrackedRun, step: int, numbers: Mapping[str, float]) -> None:
        from tensorboard.compat.proto.summary_pb2 import Summary

        values = [Summary.Value(tag=name, simple_value=each) for name, each in numbers.items()]
        self._add(run, step, Summary(value=values))

    def send_text(self, run: TrackedRun, title: str, text: str, words: Mapping[str, str]) -> None:
        self._text(run, title, text)

    def finish(self, run: TrackedRun) -> None:
        writer = self._writers.pop(run.id, None)
        if writer is not None:
            writer.close()

    def flush(self) -> None:
        for writer in self._writers.values():
            writer.flush()

    def close(self) -> None:
        for writer in self._writers.values():
            writer.close()

    def _place(self, run: TrackedRun) -> Path:
        own = run.group.partition("@")[0] != run.project
        return self._folder / _UNSAFE.sub("_", f"{run.project}/{run.name}" if own else run.name)

    def _text(self, run: TrackedRun, tag: str, text: str) -> None:
        """The last text of a tag is what is shown, so the same one is not written again."""
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.compat.proto.tensor_pb2 import TensorProto
        from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
        from tensorboard.plugins.text.metadata import create_summary_metadata

        if self._texts[run.id].get(tag) == text:
            return
        self._texts[run.id][tag] = text
        tensor = TensorProto(
            dtype="DT_STRING",
            string_val=[text.encode("utf-8")],
            tensor_shape=TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)]),
        )
        about = create_summary_metadata(display_name="", description="")
        self._add(run, 0, Summary(value=[Summary.Value(tag=tag, metadata=about, tensor=tensor)]))

    def _add(self, run: TrackedRun, step: int, summary: Any) -> None:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        if run.id not in self._writers:  # it makes a file at once
            self._writers[run.id] = EventFileWriter(str(self._place(run)))
        event = Event(wall_time=time.time(), step=step, summary=summary)
        self._writers[run.id].add_event(event)


def _table(run: TrackedRun) -> str:
    """The config as a table in Markdown, which the Text tab renders."""
    rows = (
        f"| {name} | {json.dumps(value, ensure_ascii=False, sort_keys=True)} |"
        for name, value in run.config.items()
    )
    return "\n".join(["| | |", "|---|---|", *rows])


def make_sink(
    settings: Mapping[str, Any], folder: Path, report: Callable[[str], None]
) -> TensorBoardSink:
    """In the folder of the settings, else in the tracker's own."""
    place = Path(settings.get("dir") or folder).absolute()
    command = Path(sys.prefix) / "bin" / "tensorboard"
    report(f"`{command} --logdir {place}` shows it")
    return TensorBoardSink(place)


if __name__ == "__main__":
    sys.exit(program.main(make_sink))

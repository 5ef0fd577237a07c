"""Model directories that a spec names: what each holds, by the rules of
`agentc.runtime.model_folder`, which jobs use too.

Read where the spec may read. That a path leads elsewhere is said by lowering.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from agentc.ir.module import Module, Stage
from agentc.kinds.artifacts import CHECKPOINT, TEXT_ENCODER, VISION_ENCODER
from agentc.kinds.table import MODEL_SOURCES, makers
from agentc.memory.architectures import ConfiguredShape, shape_of
from agentc.runtime.model_folder.folder import LANGUAGE_MODEL, ModelFolder, Needs, read_model_folder
from agentc.runtime.model_folder.gguf_model import read_gguf_folder
from agentc.source.files import Boundary, OutsideError, nearest_folder

ENCODER_SOURCES = (*makers(VISION_ENCODER), *makers(TEXT_ENCODER))
_NEEDS = {
    CHECKPOINT: LANGUAGE_MODEL,
    TEXT_ENCODER: Needs(language=False),
    VISION_ENCODER: Needs(language=False, tokenizer=False),
}
_REMEMBERED = 64
_GGUF = ".gguf"
"""How the backend ends that converts a file."""


@dataclass(frozen=True, slots=True)
class LocalModel:
    """`shape` is None for a type of model that is not known, and where the content has faults."""

    content: ModelFolder
    shape: ConfiguredShape | None


def read_model_folders(module: Module, boundary: Boundary) -> dict[str, LocalModel]:
    """By stage id, what is at the paths of models and encoders."""
    read: dict[tuple[str, Needs], LocalModel | None] = {}
    found: dict[str, LocalModel] = {}
    for stage in module.stages.values():
        path = _path(stage)
        if path is None:
            continue
        if stage.backend.endswith(_GGUF):
            converted = _read_file(path, boundary)
            if converted is not None:
                found[stage.id] = converted
            continue
        needs = next(needs for artifact, needs in _NEEDS.items() if stage.kind in makers(artifact))
        if (path, needs) not in read:
            read[path, needs] = _read(path, needs, boundary)
        folder = read[path, needs]
        if folder is not None:
            found[stage.id] = folder
    return found


def _path(stage: Stage) -> str | None:
    named = stage.kind in MODEL_SOURCES or stage.kind in ENCODER_SOURCES
    value = stage.fields.get("path") if named else None
    return value.json if value is not None and isinstance(value.json, str) else None


def _read(path: str, needs: Needs, boundary: Boundary) -> LocalModel | None:
    try:
        place = boundary.find_model(path)
    except OutsideError:
        return None
    marks = _marks(place, boundary)
    if marks is None:
        return None
    found = _remembered(place, path, needs, marks)
    near = None if os.path.lexists(place) else nearest_folder(path, boundary)
    if near is None:
        return found
    (missing,) = found.content.faults
    meant = replace(missing, fix=f"did you mean `path: {near}`?")
    return replace(found, content=replace(found.content, faults=(meant,)))


def _read_file(path: str, boundary: Boundary) -> LocalModel | None:
    """The model that a GGUF file holds; None where lowering reports what is there."""
    try:
        place = boundary.find_model(path)
        if not place.is_file() or not boundary.holds(place):
            return None
        state = place.stat()
    except (OutsideError, OSError, ValueError):
        return None
    return _remembered_file(place, path, (state.st_size, state.st_mtime_ns, state.st_ino))


@lru_cache(_REMEMBERED)
def _remembered_file(place: Path, path: str, _marks: tuple[int, ...]) -> LocalModel:
    content = read_gguf_folder(place, path)
    return LocalModel(content, shape_of(content.sizes))


def _marks(place: Path, boundary: Boundary) -> tuple[object, ...] | None:
    """What changes when files do; None where one may not be read."""
    marks: list[object] = []
    try:
        with os.scandir(place) as entries:
            for entry in entries:
                if not Path(entry.path).exists():
                    return (object(),)  # a link that leads nowhere
                if not boundary.holds(Path(entry.path)):
                    return None
                state = entry.stat()
                marks.append((entry.name, state.st_size, state.st_mtime_ns, state.st_ino))
    except (OSError, ValueError, RuntimeError):
        return (object(),)  # unlike any other: what it is may change
    return tuple(marks)


@lru_cache(_REMEMBERED)
def _remembered(place: Path, path: str, needs: Needs, _marks: tuple[object, ...]) -> LocalModel:
    content = read_model_folder(place, path, needs)
    return LocalModel(content, shape_of(content.sizes))

"""Model folders: what the config.json of each model directory says that a spec names.

Read where the spec may read, and only files: everything else about such a path (that it is there,
that it lies inside) is said by lowering.
"""

from __future__ import annotations

from dataclasses import dataclass

from agentc.ir.module import Module, Stage
from agentc.kinds.groups import MODEL_SOURCES
from agentc.memory.config_file import (
    CONFIG_FILE,
    MOST_BYTES,
    ConfigFileError,
    ConfiguredShape,
    shape_in,
)
from agentc.source.boundary import Boundary, OutsideError
from agentc.source.read import UnreadableError, is_file, read_named


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """`found` is None for a type of model that is not known, and where `trouble` says why the file
    cannot be understood."""

    found: ConfiguredShape | None
    trouble: str = ""


def read_model_folders(module: Module, boundary: Boundary) -> dict[str, ModelFolder]:
    """By stage id, the model directories of the module that have a config.json."""
    read: dict[str, ModelFolder | None] = {}
    found: dict[str, ModelFolder] = {}
    for stage in module.stages.values():
        path = _path(stage)
        if path is None:
            continue
        if path not in read:
            read[path] = _read(path, boundary)
        folder = read[path]
        if folder is not None:
            found[stage.id] = folder
    return found


def _path(stage: Stage) -> str | None:
    value = stage.fields.get("path") if stage.kind in MODEL_SOURCES else None
    return value.json if value is not None and isinstance(value.json, str) else None


def _read(path: str, boundary: Boundary) -> ModelFolder | None:
    try:
        place = boundary.find(path) / CONFIG_FILE
        if not is_file(place) or not boundary.holds(place):
            return None
        return ModelFolder(shape_in(read_named(place, MOST_BYTES + 1)))
    except (OutsideError, UnreadableError, OSError):
        return None
    except ConfigFileError as error:
        return ModelFolder(None, str(error))

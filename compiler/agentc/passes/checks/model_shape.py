"""What is known of a stage's model: its shape, whether this spec makes it, a folder holds it, or it
is published.

The shapes of published models are in `agentc.memory`; `lengths.py`, `parallel.py` and
`memory_of.py` ask here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from agentc.backend_api.memory import Architecture
from agentc.diagnostics.diagnostic import Severity
from agentc.memory import architecture_named, scratch_architecture
from agentc.passes.checks.model_folders import LocalModel
from agentc.passes.checks.subject import Settings, StageContext, is_made

_PUBLISHERS = frozenset(
    {"meta-llama", "mistralai", "qwen", "huggingfacetb", "tinyllama", "lmsys"},
)
"""Owners of repositories whose names say what is in them."""
_STRETCHED = re.compile(r"(?<!smollm2)-\d+[km]\b|long|yarn|rope|gradient", re.IGNORECASE)
"""Names of models that somebody has given a longer context than the one they come from."""


def model_shape(subject: StageContext, role: str = "") -> Architecture | None:
    """The shape of the model that a stage (or the first input of a role) descends from, where it is
    known: by its own config.json, by its name, or by the settings that it is made with."""
    model = subject.model(role)
    if model is None:
        return None
    folder = subject.folders.get(model.name)
    if folder is not None:
        return None if folder.shape is None else folder.shape.shape
    return model.derive(_shape)


def _shape(model: Settings) -> Architecture | None:
    name = model.text("repo") or model.text("path") or model.text("file")
    return scratch_architecture(model.get) if name is None else architecture_named(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelContext:
    """The longest sequence that a model has positions for. `setting` is that of the model's stage
    that says so, None for a published model; `severity` is a warning where only the name of a
    folder or of somebody's repository speaks for it."""

    name: str
    tokens: int
    shown: str
    setting: str | None
    severity: Severity


def model_context(subject: StageContext, role: str = "") -> ModelContext | None:
    """That of the model that a stage (or the first input of a role) descends from; None where
    nobody knows."""
    model = subject.model(role)
    if model is None:
        return None
    folder = subject.folders.get(model.name)
    if folder is not None and not is_made(model):
        source = model.text("repo") or model.text("path") or model.text("file") or ""
        return _written_context(model.name, source, folder)
    return model.derive(_context)


def _context(model: Settings) -> ModelContext | None:
    """Of a model that is no folder here."""
    if is_made(model):
        own = model.integer("context")
        if own is None:
            return None
        shown = model.note("context")
        return ModelContext(
            name=model.name, tokens=own, shown=shown, setting="context", severity="error"
        )
    source = model.text("repo") or model.text("path") or model.text("file") or ""
    shape = architecture_named(source)
    if shape is None or _STRETCHED.search(source):
        return None
    sure = bool(model.text("repo")) and source.partition("/")[0].lower() in _PUBLISHERS
    positions = f"{shape.context} positions"
    return ModelContext(
        name=model.name,
        tokens=shape.context,
        shown=f"{source} has {positions}, by its config.json"
        if sure
        else f"by its name, {source} comes from a model of {positions}",
        setting=None,
        severity="error" if sure else "warning",
    )


def _written_context(name: str, source: str, folder: LocalModel) -> ModelContext | None:
    if folder.shape is None or folder.shape.stretched:
        return None
    tokens = folder.shape.shape.context
    return ModelContext(
        name=name,
        tokens=tokens,
        shown=f"{source} has {tokens} positions, by its config.json",
        setting=None,
        severity="error",
    )

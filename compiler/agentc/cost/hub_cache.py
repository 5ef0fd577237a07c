"""The size of a model that the cache of the Hugging Face hub on this machine already has."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from agentc.runtime.model_folder.config import of_text
from agentc.runtime.model_folder.folder import Needs, read_model_folder

_WEIGHTS_ALONE = Needs(tokenizer=False, language=False)


def cached_size(repo: str, revision: str) -> Mapping[str, Any] | None:
    """As `plan.job.ModelSize` has it; None where the cache lacks the model, or a part of it."""
    name = "--".join(("models", *repo.split("/")))
    return _size_of(_cache() / name / "snapshots" / revision)


@lru_cache(64)
def _size_of(snapshot: Path) -> Mapping[str, Any] | None:
    if not snapshot.is_dir():
        return None
    folder = read_model_folder(snapshot, snapshot.name, _WEIGHTS_ALONE)
    if not folder.parameters:
        return None
    sizes = {
        name: of_text(folder.config, key)
        for name, key in (("layers", "num_hidden_layers"), ("hidden", "hidden_size"))
    }
    return {
        "parameters": folder.parameters,
        **{name: size for name, size in sizes.items() if isinstance(size, int)},
    }


def _cache() -> Path:
    """Where the hub's own client keeps what it downloads."""
    variables = os.environ
    if variables.get("HF_HUB_CACHE"):
        return Path(variables["HF_HUB_CACHE"]).expanduser()
    home = variables.get("HF_HOME")
    if not home:
        base = variables.get("XDG_CACHE_HOME") or "~/.cache"
        return Path(base).expanduser() / "huggingface" / "hub"
    return Path(home).expanduser() / "hub"

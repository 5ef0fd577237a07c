"""shape_in: the shape of a model by its own config.json. The rules of that file are those of
`agentc.runtime.model_folder.config`, which jobs use too.

Neighbour: `architectures.py`, for models that are known by name or by a spec's settings.
"""

from __future__ import annotations

from dataclasses import dataclass

from agentc.backend_api.memory import Architecture
from agentc.runtime.model_folder.config import (
    MOST_BYTES,
    ConfigFileError,
    ConfiguredSizes,
    read_config,
    sizes_of,
)

__all__ = ["MOST_BYTES", "ConfigFileError", "ConfiguredShape", "shape_in", "shape_of"]


@dataclass(frozen=True, slots=True)
class ConfiguredShape:
    """`stretched`: positions are scaled by a factor, so that the longest sequence is not said by
    `shape.context` alone."""

    shape: Architecture
    stretched: bool


def shape_in(content: bytes) -> ConfiguredShape | None:
    """What a config.json says; None of a type of model that is not known. Raises
    ConfigFileError."""
    return shape_of(sizes_of(read_config(content)))


def shape_of(sizes: ConfiguredSizes | None) -> ConfiguredShape | None:
    """The same of sizes that were read."""
    if sizes is None:
        return None
    shape = Architecture(
        hidden=sizes.hidden,
        layers=sizes.layers,
        heads=sizes.heads,
        kv_heads=sizes.kv_heads,
        head_size=sizes.head_size,
        intermediate=sizes.intermediate,
        vocabulary=sizes.vocabulary,
        tied=sizes.tied,
        context=sizes.context,
        biased=sizes.biased,
    )
    return ConfiguredShape(shape, sizes.stretched)

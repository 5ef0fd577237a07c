"""What a stage makes: the product of its kind, or, where the stage says that itself, what it says.
Neighbour: `agentc.kinds.groups`, which knows of kinds alone."""

from __future__ import annotations

from agentc.ir.module import Stage
from agentc.kinds import kind_named
from agentc.kinds.artifacts import ArtifactType


def product_of(stage: Stage) -> ArtifactType | None:
    """The type of its artifact; None of a kind that does not exist."""
    kind = kind_named(stage.kind)
    if kind is None:
        return None
    value = stage.fields.get(kind.product_setting)
    return kind.product(None if value is None else value.json)

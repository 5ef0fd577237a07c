"""What a stage makes: the product of its kind, or, where the stage says that itself, what it says.
Neighbour: `agentc.kinds.groups`, which knows of kinds alone."""

from __future__ import annotations

from agentc.ir.module import Stage
from agentc.kinds import kind_named
from agentc.kinds.artifacts import ArtifactType


def product_of(stage: Stage) -> ArtifactType | None:
    """The type of its artifact; None of a kind that does not exist."""
    kind = kind_named(stage.kind)
    output = stage.fields.get("output")
    return None if kind is None else kind.product(None if output is None else output.json)

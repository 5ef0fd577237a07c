"""`script`, a stage of the user's own program: its fields, inputs and products. What such a program
says of itself is read by `agentc.backend_api.script_header`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agentc.kinds.artifacts import (
    ARTIFACT_TYPES,
    CANDIDATE_SCORES,
    CHECKPOINT,
    CRITIC_CHECKPOINT,
    FOLDER,
    METRICS,
    PREFERENCE_PAIRS,
    PRIVILEGED_INFORMATION,
    REPORT,
    SESSION,
    SFT_DATASET,
    TASK_SCORES,
    TRAJECTORIES,
    VERDICTS,
    ArtifactType,
)
from agentc.kinds.field import Role
from agentc.kinds.kind import Counts, Kind
from agentc.kinds.settings import fields_of
from agentc.program.settings import setting

PRODUCTS: Mapping[str, ArtifactType] = {
    "trajectories": TRAJECTORIES,
    "conversations": SFT_DATASET,
    "pairs": PREFERENCE_PAIRS,
    "checkpoint": CHECKPOINT,
    "metrics": METRICS,
    "folder": FOLDER,
}
"""What a script may make, by the word for it."""

_KEPT = (
    # Whatever a script makes of these, a model that acts might be shown.
    PRIVILEGED_INFORMATION,
    CRITIC_CHECKPOINT,
    CANDIDATE_SCORES,
    TASK_SCORES,
    VERDICTS,
    REPORT,
    SESSION,
)
NAMED_INPUT = Role(
    name="inputs",
    accepts=tuple(each for each in ARTIFACT_TYPES if each not in _KEPT),
    doc="What the script reads: stages, by names that you choose.",
    many=True,
    optional=True,
)

RANGE: Mapping[str, Any] = {
    "type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2,
}  # fmt: skip
"""The schema of the bounds of scores that somebody else's program gives."""


# fmt: off
@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptSettings:
    """Settings of `script`."""

    run: str | None = setting(
        "A Python file, relative to the spec. It is given the path of a JSON file that says "
        "where its inputs and its output are (docs/scripts.md).", None)
    command: tuple[str, ...] = setting(
        "In place of `run`, the words of a command. List your files that it names in "
        "`sources`; AGENTC_STAGE holds the path of the JSON file.", (),
        schema={"type": "array", "items": {"type": "string"}, "minItems": 1})
    sources: tuple[str, ...] = setting(
        "Further files of text that it imports or reads, relative to the spec. It finds them, "
        "and itself, under the same names in the folder that it is started in.", ())
    output: Literal[
        "trajectories", "conversations", "pairs", "checkpoint", "metrics", "folder"
    ] = setting(
        "What it makes: rows of `trajectories`, `conversations` or `pairs`, a `checkpoint`, "
        "`metrics` (a score for each task), or a `folder` of files that only other scripts read.")
    params: Mapping[str, Any] = setting(
        "Values that the program receives, by names of its own.", {})
    requirements: str | None = setting(
        "The lock of the software that it runs in, relative to the spec, with exact versions "
        "and hashes; null: what agentc's own light jobs run in.", None)
    network: bool = setting("Whether it may use the network.", False)
    range: tuple[float, ...] = setting(
        "The lowest and the highest score that a task can get (`metrics`); intervals and claims "
        "depend on it, and a score outside of it fails the stage.", (0.0, 1.0), schema=RANGE)
    confidence: float = setting("Confidence of the intervals of `metrics`.", 0.95, above=0, below=1)
    seed: int = setting("A seed that the program receives.", 0, seed=True)
# fmt: on


SCRIPT_KINDS: tuple[Kind, ...] = (
    Kind(
        name="script",
        doc="A custom Python file or command: it reads what stages made and makes rows, a "
        "model, metrics, or files of its own.",
        example="{kind: script, run: filter.py, inputs: {rows: rollout}, output: trajectories}",
        produces=FOLDER,
        fields=fields_of(ScriptSettings),
        default_backend="script.run",
        counts=Counts(made="rows"),
        forecast="unknown",
        named=NAMED_INPUT,
        products=PRODUCTS,
    ),
)

"""`script`, a stage of the user's own program: its fields, inputs and products. What such a program
says of itself is read by `agentc.backend_api.script_header`.
"""

from collections.abc import Mapping

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
from agentc.kinds.field import REQUIRED, Field, Role, boolean, choice, number, seed, string, strings
from agentc.kinds.kind import Counts, Kind

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
    doc="What the script reads: stages by names of your own.",
    many=True,
    optional=True,
)

NETWORK = boolean("network", "Whether it may use the network.", False)


def score_range(doc: str) -> Field:
    """The bounds of scores that somebody else's program gives."""
    return Field(
        name="range",
        schema={"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
        doc=doc,
        default=[0.0, 1.0],
    )


SCRIPT_FIELDS: tuple[Field, ...] = (
    string("run", "A Python file, relative to the spec. It is given the path of a JSON file that "
           "says where its inputs and its output are (docs/scripts.md).", nullable=True),
    Field(
        name="command",
        schema={"type": "array", "items": {"type": "string"}, "minItems": 1},
        doc="In place of `run`, the words of a command. Files of yours that it names belong into "
        "`sources`; AGENTC_STAGE holds the path of the JSON file.",
        default=[],
    ),
    strings("sources", "Further files of text that it imports or reads, relative to the spec. It "
            "finds them, and itself, under the same names in the folder that it is started in."),
    choice("output", "What it makes: rows of `trajectories`, `conversations` or `pairs`, a "
           "`checkpoint`, `metrics` (a score for each task), or a `folder` of files that only "
           "other scripts read.", tuple(PRODUCTS), REQUIRED),
    Field(
        name="params",
        schema={"type": "object"},
        doc="Values that it is told, by names of its own.",
        default={},
    ),
    string("requirements", "The lock of the software that it runs in, relative to the spec, with "
           "exact versions and hashes; null: what agentc's own light jobs run in.", nullable=True),
    NETWORK,
    score_range("The lowest and the highest score that a task can get (`metrics`); intervals and "
                "claims rest on it, and a score outside of it fails the stage."),
    number("confidence", "Confidence of the intervals of `metrics`.", 0.95, above=0, below=1),
    seed("seed", "A seed that it is told."),
)  # fmt: skip

SCRIPT_KINDS: tuple[Kind, ...] = (
    Kind(
        name="script",
        doc="A Python file, or a command, of your own: it reads what stages made and makes rows, a "
        "model, metrics, or files of its own.",
        produces=FOLDER,
        fields=SCRIPT_FIELDS,
        default_backend="script.run",
        counts=Counts(made="rows"),
        forecast="unknown",
        named=NAMED_INPUT,
        products=PRODUCTS,
    ),
)

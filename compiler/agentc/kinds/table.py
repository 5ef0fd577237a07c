"""The table of stage kinds. One rule of the Snakefile stands for each of them."""

from __future__ import annotations

from dataclasses import dataclass

from agentc.ir.artifacts import (
    CHECKPOINT,
    COMPARISON,
    METRICS,
    PREFERENCE_PAIRS,
    REPORT,
    SEARCH_TREES,
    SFT_DATASET,
    TRAJECTORIES,
    VERDICTS,
    ArtifactType,
)
from agentc.kinds.data import DATASET_FIELDS, MIX_FIELDS
from agentc.kinds.evaluation import COMPARE_FIELDS, EVALUATE_FIELDS, JUDGE_FIELDS
from agentc.kinds.field import Field, Role
from agentc.kinds.interaction import EXPERT_FIELDS, PAIR_FIELDS, ROLLOUT_FIELDS
from agentc.kinds.model import MODEL_FIELDS
from agentc.kinds.revision import REVISE_FIELDS
from agentc.kinds.search import SEARCH_FIELDS
from agentc.kinds.training import DPO_FIELDS, SFT_FIELDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A stage kind: `roles` are its inputs (edges), `fields` its settings, `produces` its product.

    `uses` names what it needs besides artifacts: "environment", "server", "prompt" (each is a key
    of the stage that refers to an entry of the section of that name). `default_backend` is what
    `backend: auto` prefers when several backends can do the work. The inputs of a kind that
    `gathers` are filled in by the compiler.
    """

    name: str
    doc: str
    produces: ArtifactType
    roles: tuple[Role, ...] = ()
    fields: tuple[Field, ...] = ()
    uses: tuple[str, ...] = ()
    default_backend: str | None = None
    gathers: bool = False


_POLICY = Role(name="policy", accepts=(CHECKPOINT,), doc="The model that acts.")

KINDS: tuple[Kind, ...] = (
    Kind(
        name="model",
        doc="Obtain a model: initialise one from scratch, take one from a hub or from a path.",
        produces=CHECKPOINT,
        roles=(
            Role(
                name="corpus",
                accepts=(TRAJECTORIES, SFT_DATASET),
                doc="Text that a new tokenizer is trained on (model.scratch).",
                many=True,
                optional=True,
            ),
        ),
        fields=MODEL_FIELDS,
    ),
    Kind(
        name="expert",
        doc="Collect expert trajectories from an environment's own planner or gold paths.",
        produces=TRAJECTORIES,
        fields=EXPERT_FIELDS,
        uses=("environment", "prompt"),
        default_backend="expert.planner",
    ),
    Kind(
        name="dataset",
        doc="Obtain conversations from a file or from a hub.",
        produces=SFT_DATASET,
        fields=DATASET_FIELDS,
    ),
    Kind(
        name="sft",
        doc="Supervised fine-tuning on conversations; loss on assistant tokens only.",
        produces=CHECKPOINT,
        roles=(
            Role(name="model", accepts=(CHECKPOINT,), doc="The model to start from."),
            Role(
                name="data", accepts=(TRAJECTORIES, SFT_DATASET), doc="What to imitate.", many=True
            ),
        ),
        fields=SFT_FIELDS,
        default_backend="trl.sft",
    ),
    Kind(
        name="dpo",
        doc="Direct preference optimisation on pairs of continuations.",
        produces=CHECKPOINT,
        roles=(
            Role(name="model", accepts=(CHECKPOINT,), doc="The policy to start from."),
            Role(
                name="reference",
                accepts=(CHECKPOINT,),
                doc="The frozen reference; the starting policy when absent.",
                optional=True,
            ),
            Role(name="data", accepts=(PREFERENCE_PAIRS,), doc="The pairs.", many=True),
        ),
        fields=DPO_FIELDS,
        default_backend="trl.dpo",
    ),
    Kind(
        name="rollout",
        doc="Let a policy act in an environment and record the episodes.",
        produces=TRAJECTORIES,
        roles=(_POLICY,),
        fields=ROLLOUT_FIELDS,
        uses=("environment", "prompt", "server"),
        default_backend="rollout.react",
    ),
    Kind(
        name="search",
        doc="Grow a tree of attempts at each task by Monte Carlo tree search (Agent-R).",
        produces=SEARCH_TREES,
        roles=(_POLICY,),
        fields=SEARCH_FIELDS,
        uses=("environment", "prompt", "server"),
        default_backend="search.mcts",
    ),
    Kind(
        name="revise",
        doc="Splice bad trajectories of search trees onto good ones where the actor finds the "
        "first error, and collect good ones (Agent-R).",
        produces=SFT_DATASET,
        roles=(
            Role(name="trees", accepts=(SEARCH_TREES,), doc="The search trees.", many=True),
            Role(
                name="policy",
                accepts=(CHECKPOINT,),
                doc="The actor, which judges itself; needed by the part `revision`.",
                optional=True,
            ),
        ),
        fields=REVISE_FIELDS,
        uses=("environment", "prompt", "server"),
        default_backend="revise.splice",
    ),
    Kind(
        name="mix",
        doc="Mix agent conversations with general ones, at a stated share of rows.",
        produces=SFT_DATASET,
        roles=(
            Role(
                name="agent",
                accepts=(TRAJECTORIES, SFT_DATASET),
                doc="All of it is kept.",
                many=True,
            ),
            Role(
                name="general",
                accepts=(TRAJECTORIES, SFT_DATASET),
                doc="What is drawn from.",
                many=True,
            ),
        ),
        fields=MIX_FIELDS,
        default_backend="mix.share",
    ),
    Kind(
        name="pair",
        doc="Build contrastive pairs from expert and explored trajectories (ETO, section 3).",
        produces=PREFERENCE_PAIRS,
        roles=(
            Role(
                name="expert",
                accepts=(TRAJECTORIES,),
                doc="Expert trajectories; not needed with `sources: self`.",
                many=True,
                optional=True,
            ),
            Role(name="rollouts", accepts=(TRAJECTORIES,), doc="Explored ones.", many=True),
        ),
        fields=PAIR_FIELDS,
        default_backend="pair.contrast",
    ),
    Kind(
        name="evaluate",
        doc="Roll a policy out on a split and measure reward and success, with intervals.",
        produces=METRICS,
        roles=(_POLICY,),
        fields=EVALUATE_FIELDS,
        uses=("environment", "prompt", "server"),
        default_backend="evaluate.agent",
    ),
    Kind(
        name="compare",
        doc="One table over several evaluations, with paired differences on the same tasks.",
        produces=COMPARISON,
        roles=(
            Role(name="of", accepts=(METRICS,), doc="The evaluations, in table order.", many=True),
            Role(
                name="baseline",
                accepts=(METRICS,),
                doc="The evaluation that the others are compared with; the first when absent.",
                optional=True,
            ),
        ),
        fields=COMPARE_FIELDS,
        default_backend="compare.paired",
    ),
    Kind(
        name="judge",
        doc="Hold the evaluations against the spec's claims; added to every plan that has some.",
        produces=VERDICTS,
        fields=JUDGE_FIELDS,
        default_backend="judge.claims",
        gathers=True,
    ),
    Kind(
        name="report",
        doc="One static HTML page over the whole experiment; added to every plan as its last job.",
        produces=REPORT,
        default_backend="report.html",
        gathers=True,
    ),
)


def kind_named(name: str) -> Kind | None:
    """The kind of that name, or None."""
    return next((kind for kind in KINDS if kind.name == name), None)

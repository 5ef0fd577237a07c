"""The table of stage kinds. One rule of the Snakefile stands for each of them. Longer than other
modules, for it is one literal that is read from top to bottom.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from agentc.kinds.artifacts import (
    CANDIDATES,
    CHECKPOINT,
    COMPARISON,
    CRITIC_CHECKPOINT,
    FOLDER,
    METRICS,
    POLICY_RUN,
    PREFERENCE_PAIRS,
    PRIVILEGED_INFORMATION,
    REPORT,
    REWARDED_TURNS,
    SEARCH_TREES,
    SFT_DATASET,
    TEXT_ENCODER,
    TRAJECTORIES,
    VERDICTS,
    VISION_ENCODER,
    ArtifactType,
)
from agentc.kinds.evaluation import (
    BENCHMARK_FIELDS,
    COMPARE_FIELDS,
    EVALUATE_FIELDS,
    JUDGE_FIELDS,
    MEASURE_FIELDS,
)
from agentc.kinds.field import Role
from agentc.kinds.interaction import (
    CHOICE,
    EXPERT_FIELDS,
    PAIR_FIELDS,
    PREFIXES,
    PRIVILEGED_FIELDS,
    ROLLOUT_FIELDS,
)
from agentc.kinds.kind import Counts, Kind
from agentc.kinds.models import (
    DATASET_FIELDS,
    ENCODER_FIELDS,
    MIX_FIELDS,
    MODEL_FIELDS,
    TEXT_ENCODER_FIELDS,
)
from agentc.kinds.reinforcement import (
    CHECKPOINT_FIELDS,
    NOT_ONLINE,
    OFFLINE_RL_FIELDS,
    ONLINE_RL_FIELDS,
)
from agentc.kinds.script import NAMED_INPUT, PRODUCTS, SCRIPT_FIELDS
from agentc.kinds.search import RANK_FIELDS, REVISE_FIELDS, SAMPLE_FIELDS, SEARCH_FIELDS
from agentc.kinds.training import CRITIC_FIELDS, DPO_FIELDS, SFT_FIELDS

MODEL_KIND = "model"
"""The kind of what stands under `models:`, which needs no `kind:`."""
JUDGE_KIND = "judge"
REPORT_KIND = "report"
"""The kinds of the stages that are added to a spec: a judge of its claims, and a report."""

_POLICY = Role(name="policy", accepts=(CHECKPOINT,), doc="The model that acts.")
_ENCODER = Role(
    name="encoder",
    accepts=(TEXT_ENCODER,),
    doc="What the critic reads with; without it a copy of the policy's own body.",
    optional=True,
)

KINDS: tuple[Kind, ...] = (
    Kind(
        name=MODEL_KIND,
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
        forecast="weights",
    ),
    Kind(
        name="encoder",
        doc="Obtain a model that makes features of pictures, such as CLIP: an environment measures "
        "by it how alike two of them are (`scorer`).",
        produces=VISION_ENCODER,
        fields=ENCODER_FIELDS,
        forecast="weights",
    ),
    Kind(
        name="text_encoder",
        doc="Obtain a model that makes features of texts, such as RoBERTa: a critic of utterances "
        "reads by it.",
        produces=TEXT_ENCODER,
        roles=(
            Role(
                name="corpus",
                accepts=(TRAJECTORIES, SFT_DATASET),
                doc="Text that a new tokenizer is trained on (text_encoder.scratch).",
                many=True,
                optional=True,
            ),
        ),
        fields=TEXT_ENCODER_FIELDS,
        forecast="weights",
    ),
    Kind(
        name="expert",
        doc="Collect expert trajectories from an environment's own planner or gold paths.",
        produces=TRAJECTORIES,
        fields=EXPERT_FIELDS,
        uses=("environment", "prompt"),
        default_backend="expert.planner",
        collects=True,
        forecast="demonstrations",
    ),
    Kind(
        name="privileged",
        doc="Collect what an environment hides of its tasks and a critic may know while it is "
        "trained (SWEET-RL, section 4); nothing that acts accepts it.",
        produces=PRIVILEGED_INFORMATION,
        fields=PRIVILEGED_FIELDS,
        uses=("environment",),
        default_backend="privileged.environment",
        counts=Counts(made="texts"),
        forecast="texts",
    ),
    Kind(
        name="dataset",
        doc="Obtain conversations or preference pairs from a file or from a hub.",
        produces=SFT_DATASET,
        fields=DATASET_FIELDS,
        products={"preference": PREFERENCE_PAIRS},
        product_setting="format",
        counts=Counts(made="rows"),
        forecast="conversations",
    ),
    Kind(
        name="sft",
        doc="Supervised fine-tuning on conversations; loss on assistant tokens only.",
        produces=CHECKPOINT,
        roles=(
            Role(name="model", accepts=(CHECKPOINT,), doc="The model to start from."),
            Role(
                name="data",
                accepts=(TRAJECTORIES, SFT_DATASET, PREFERENCE_PAIRS),
                doc="What to imitate; of pairs the chosen side.",
                many=True,
            ),
        ),
        fields=SFT_FIELDS,
        default_backend="trl.sft",
        trains=True,
        forecast="training",
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
        trains=True,
        forecast="training",
    ),
    Kind(
        name="critic",
        doc="Train a model that scores trajectories, on pairs of them and what only it may know "
        "(SWEET-RL, section 4).",
        produces=CRITIC_CHECKPOINT,
        roles=(
            Role(name="model", accepts=(CHECKPOINT,), doc="The model to start from."),
            Role(
                name="reference",
                accepts=(CHECKPOINT,),
                doc="What log-ratios are against; the model to start from when absent.",
                optional=True,
            ),
            Role(name="data", accepts=(PREFERENCE_PAIRS,), doc="The pairs.", many=True),
            Role(
                name="privileged",
                accepts=(PRIVILEGED_INFORMATION,),
                doc="Hidden texts of the tasks; without them the critic knows what the agent knew.",
                optional=True,
            ),
        ),
        fields=CRITIC_FIELDS,
        default_backend="trl.critic",
        trains=True,
        forecast="training",
    ),
    Kind(
        name="online_rl",
        doc="Let a policy act and learn in turns, in one job that goes on where it was cut off "
        "(ArCHer and its rivals).",
        produces=POLICY_RUN,
        roles=(
            _POLICY,
            _ENCODER,
            Role(
                name="start",
                accepts=(POLICY_RUN,),
                doc="A run that this one goes on from as if it had been longer; `policy` is "
                "still what that one began with.",
                optional=True,
            ),
        ),
        fields=ONLINE_RL_FIELDS,
        uses=("environment", "prompt"),
        default_backend="archer.online_rl",
        without=NOT_ONLINE,
        online=True,
        forecast="reinforcement",
    ),
    Kind(
        name="offline_rl",
        doc="Let a policy learn from rewards of recorded episodes, its own or others', and play "
        "none (offline ArCHer). `evaluate` says what it is worth then.",
        produces=POLICY_RUN,
        roles=(
            Role(name="policy", accepts=(CHECKPOINT,), doc="The model to start from."),
            Role(
                name="data",
                accepts=(TRAJECTORIES,),
                doc="The episodes, with the rewards of their turns. Those that ended in an error "
                "do not count.",
                many=True,
            ),
            _ENCODER,
        ),
        fields=OFFLINE_RL_FIELDS,
        default_backend="archer.offline_rl",
        forecast="experience",
    ),
    Kind(
        name="checkpoint",
        doc="Take a policy out of a run of RL.",
        produces=CHECKPOINT,
        roles=(Role(name="run", accepts=(POLICY_RUN,), doc="The run."),),
        fields=CHECKPOINT_FIELDS,
        default_backend="pick.checkpoint",
    ),
    Kind(
        name="rollout",
        doc="Let a policy act in an environment and record the episodes.",
        produces=TRAJECTORIES,
        roles=(_POLICY, PREFIXES, *CHOICE),
        fields=ROLLOUT_FIELDS,
        uses=("environment", "prompt", "server"),
        default_backend="rollout.react",
        acts=True,
        collects=True,
        longest_reply="decode.max_tokens",
        forecast="episodes",
    ),
    Kind(
        name="search",
        doc="Grow a tree of attempts at each task by Monte Carlo tree search (Agent-R).",
        produces=SEARCH_TREES,
        roles=(_POLICY, PREFIXES),
        fields=SEARCH_FIELDS,
        uses=("environment", "prompt", "server"),
        default_backend="search.mcts",
        acts=True,
        collects=True,
        longest_reply="decode.max_tokens",
        counts=Counts(made="trees", replies="samples"),
        forecast="trees",
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
        reworks=("trees",),
        longest_reply="judge.max_tokens",
        counts=Counts(made="rows", replies="judgements", tokens="judge_"),
        forecast="revisions",
    ),
    Kind(
        name="mix",
        doc="Mix agent conversations with general ones, at a stated share of rows.",
        produces=SFT_DATASET,
        roles=(
            Role(
                name="agent",
                accepts=(TRAJECTORIES, SFT_DATASET),
                doc="All of it is kept, or the best of each task.",
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
        reworks=("agent", "general"),
        forecast="mixture",
    ),
    Kind(
        name="sample",
        doc="Draw several replies of a policy at turns of episodes (SWEET-RL, section 4.2).",
        produces=CANDIDATES,
        roles=(
            Role(name="policy", accepts=(CHECKPOINT,), doc="The model that replies."),
            Role(
                name="rollouts",
                accepts=(TRAJECTORIES,),
                doc="The episodes of whose turns some are taken.",
                many=True,
            ),
        ),
        fields=SAMPLE_FIELDS,
        uses=("server",),
        default_backend="sample.turns",
        reworks=("rollouts",),
        longest_reply="decode.max_tokens",
        counts=Counts(made="rows", replies="replies"),
        forecast="candidates",
    ),
    Kind(
        name="rank",
        doc="Say what each candidate is worth: its log-probability under a critic, less that under "
        "a reference (SWEET-RL, equation 3).",
        produces=REWARDED_TURNS,
        roles=(
            Role(name="candidates", accepts=(CANDIDATES,), doc="What is ranked."),
            Role(name="critic", accepts=(CRITIC_CHECKPOINT,), doc="The critic."),
            Role(
                name="reference",
                accepts=(CHECKPOINT,),
                doc="What the critic was trained against; not needed with `reference_context: "
                "sampler`.",
                optional=True,
            ),
            Role(
                name="privileged",
                accepts=(PRIVILEGED_INFORMATION,),
                doc="The hidden texts, of a critic that was trained with them.",
                optional=True,
            ),
        ),
        fields=RANK_FIELDS,
        uses=("server",),
        default_backend="rank.advantage",
        reworks=("candidates",),
        counts=Counts(made="rows", replies="scores"),
        forecast="scores",
    ),
    Kind(
        name="pair",
        doc="Build contrastive pairs from expert and explored trajectories (ETO, section 3), or "
        "from ranked candidates of turns (SWEET-RL, section 4.2).",
        produces=PREFERENCE_PAIRS,
        roles=(
            Role(
                name="expert",
                accepts=(TRAJECTORIES, SFT_DATASET),
                doc="Expert trajectories, or conversations with task ids and rewards; not needed "
                "with `sources: self`.",
                many=True,
                optional=True,
            ),
            Role(
                name="rollouts",
                accepts=(TRAJECTORIES,),
                doc="Explored ones.",
                many=True,
                optional=True,
            ),
            Role(
                name="turns",
                accepts=(REWARDED_TURNS,),
                doc="Ranked candidates, in place of `rollouts`.",
                many=True,
                optional=True,
            ),
        ),
        fields=PAIR_FIELDS,
        default_backend="pair.contrast",
        reworks=("expert", "rollouts", "turns"),
        forecast="pairs",
    ),
    Kind(
        name="evaluate",
        doc="Roll a policy out on a split and measure reward and success, with intervals.",
        produces=METRICS,
        roles=(_POLICY, PREFIXES, *CHOICE),
        fields=EVALUATE_FIELDS,
        uses=("environment", "prompt", "server"),
        default_backend="evaluate.agent",
        acts=True,
        longest_reply="decode.max_tokens",
    ),
    Kind(
        name="benchmark",
        doc="Score a model on tasks of somebody else's evaluator, which asks the stage's server: a "
        "score of every sample, with intervals.",
        produces=METRICS,
        roles=(Role(name="policy", accepts=(CHECKPOINT,), doc="The model that answers."),),
        fields=BENCHMARK_FIELDS,
        uses=("server",),
        default_backend="benchmark.lm_eval",
        counts=Counts(made="rows"),
        forecast="unknown",
    ),
    Kind(
        name="measure",
        doc="Measure reward and success of episodes that are there: trajectories, or the answer "
        "of each search tree.",
        produces=METRICS,
        roles=(
            Role(
                name="of",
                accepts=(TRAJECTORIES, SEARCH_TREES),
                doc="The episodes, or the searches.",
            ),
        ),
        fields=MEASURE_FIELDS,
        uses=("environment",),
        default_backend="measure.episodes",
    ),
    Kind(
        name="compare",
        doc="One table over several evaluations, or several revisions, with paired differences on "
        "the same tasks.",
        produces=COMPARISON,
        roles=(
            Role(
                name="of",
                accepts=(METRICS, SFT_DATASET),
                doc="The evaluations, in table order; or revise stages, of which revision length "
                "and the share that was revised are compared.",
                many=True,
            ),
            Role(
                name="baseline",
                accepts=(METRICS, SFT_DATASET),
                doc="What the others are compared with; the first when absent.",
                optional=True,
            ),
        ),
        fields=COMPARE_FIELDS,
        default_backend="compare.paired",
    ),
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
    Kind(
        name=JUDGE_KIND,
        doc="Hold the evaluations against the spec's claims; added to every plan that has some.",
        produces=VERDICTS,
        fields=JUDGE_FIELDS,
        default_backend="judge.claims",
        gathers=True,
    ),
    Kind(
        name=REPORT_KIND,
        doc="One static HTML page over the whole experiment; added to every plan as its last job.",
        produces=REPORT,
        default_backend="report.html",
        gathers=True,
    ),
)


_BY_NAME = {kind.name: kind for kind in KINDS}


def kind_named(name: str) -> Kind | None:
    """The kind of that name, or None."""
    return _BY_NAME.get(name)


# Names of stage kinds by what they do, from what the table says of each.
#
# A new kind is in the groups that its entry puts it in; no other module lists kinds.


def kinds_where(holds: Callable[[Kind], bool]) -> tuple[str, ...]:
    """The names of the kinds of which something holds, in the order of the table."""
    return tuple(kind.name for kind in KINDS if holds(kind))


@cache
def makers(artifact: ArtifactType) -> tuple[str, ...]:
    """The kinds that produce an artifact of that type, or of one that extends it."""
    return kinds_where(lambda kind: kind.produces.fits(artifact))


TRAINERS = kinds_where(lambda kind: kind.trains)
PAIR_TRAINERS = kinds_where(
    lambda kind: kind.trains and any(role.accepts == (PREFERENCE_PAIRS,) for role in kind.roles)
)
"""Trainers whose rows are pairs: two sides each."""
ACTING = kinds_where(lambda kind: kind.acts)
SERVED = kinds_where(lambda kind: "server" in kind.uses)
"""Kinds that ask a model server."""
LEASING = kinds_where(lambda kind: bool({"server", "environment"}.intersection(kind.uses)))
"""Kinds whose jobs may lease one: to ask it, or for an environment that asks it."""
ON_TASKS = kinds_where(lambda kind: kind.has("split"))
"""Kinds that take tasks of a split."""
ONLINE = kinds_where(lambda kind: kind.online)
"""Kinds that act and learn in one job."""
REINFORCED = makers(POLICY_RUN)
"""Kinds that train a policy by rewards, in a loop of their own: those and offline RL."""
COLLECTORS = kinds_where(lambda kind: kind.collects)
REWORKERS: Mapping[str, tuple[str, ...]] = {
    kind.name: kind.reworks for kind in KINDS if kind.reworks
}
"""Kinds that make training data of what was collected, and the inputs that they make it of."""
MODEL_MAKERS = kinds_where(lambda kind: kind.trains or kind.produces.fits(CHECKPOINT))
"""Kinds whose jobs hold the weights of a model in their own process."""
MODEL_SOURCES = kinds_where(
    lambda kind: kind.produces.fits(CHECKPOINT) and not kind.reads(CHECKPOINT)
)
"""Kinds whose models descend from no other stage."""
WITHOUT_MODEL = kinds_where(
    lambda kind: kind.name not in (*MODEL_MAKERS, *SERVED) and not kind.gathers
)
"""Kinds that neither hold nor ask a model; without those that gather, which nobody places."""

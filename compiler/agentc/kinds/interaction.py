"""The kinds that meet an environment or its trajectories, with their fields: expert, privileged,
rollout, pair; and inputs that several acting kinds share.
"""

from __future__ import annotations

from agentc.kinds.artifacts import (
    CHECKPOINT,
    CRITIC_CHECKPOINT,
    PREFERENCE_PAIRS,
    PRIVILEGED_INFORMATION,
    REWARDED_TURNS,
    SEARCH_TREES,
    SFT_DATASET,
    TRAJECTORIES,
)
from agentc.kinds.field import (
    REQUIRED,
    Field,
    Role,
    boolean,
    choice,
    group,
    integer,
    number,
    seed,
    string,
    strings,
)
from agentc.kinds.kind import Counts, Kind

PREFIXES = Role(
    name="prefixes",
    accepts=(TRAJECTORIES, SEARCH_TREES),
    doc="What is cut: each episode, or tree, plays the turns before the cut again, and the policy "
    "goes on from there.",
    many=True,
    optional=True,
)

PREFIX = group(
    "prefix",
    "Where the trajectories of `prefixes` are cut. At least their last turn is done again.",
    (
        choice("cut", "`random`: behind one turn of each, all alike likely; `every`: behind each "
               "turn, an episode (or `attempts`) for every length.", ("random", "every"),
               "random"),
        integer("shortest", "Fewest turns of a prefix; 0 also begins without any.", 1, minimum=0),
        integer("longest", "Most turns of a prefix; null: all but the last of its trajectory.",
                None, minimum=0, nullable=True),
        number("max_reward", "Cut trajectories with at most this reward; null: all of them.", None,
               nullable=True),
        boolean("counted", "Whether its turns count towards `max_turns`, or towards `depth` of a "
                "search. The environment's own limit counts them in any case.", True),
    ),
)  # fmt: skip


# Inputs of kinds whose every reply may be the one of several that a critic chooses: best-of-N at
# test time (SWEET-RL, arXiv 2503.15478, figure 3a).

CHOICE = (
    Role(
        name="critic",
        accepts=(CRITIC_CHECKPOINT,),
        doc="Who chooses among `candidates`.",
        optional=True,
    ),
    Role(
        name="reference",
        accepts=(CHECKPOINT,),
        doc="What the critic was trained against.",
        optional=True,
    ),
    Role(
        name="privileged",
        accepts=(PRIVILEGED_INFORMATION,),
        doc="The hidden texts, of a critic that was trained with them. The policy sees none.",
        optional=True,
    ),
)


OBSERVATION_PREFIX = "Observation: "
"""What stands before an observation where a prompt says nothing else."""

SPLIT = string("split", "Name of the environment's task split.", REQUIRED)
LIMIT = integer(
    "limit",
    "Take only the first so many tasks of the split; null: all.",
    None,
    minimum=1,
    nullable=True,
)

ENVIRONMENT_AT = choice(
    "environment_at",
    "Where the environment is: `server`, a process of its own behind HTTP; `auto`, the process of "
    "the job's program where its software is the program's and its calls are quick, else a server. "
    "Results are the same.",
    ("auto", "server"),
    "auto",
    identity="placement",
)


def decoding(temperature: float, max_tokens: int) -> Field:
    """The group `decode`, with what it is where the spec says nothing."""
    return group(
        "decode",
        "How replies are sampled.",
        (
            number("temperature", "0 is greedy.", temperature, minimum=0),
            number("top_p", "Nucleus mass.", 1.0, above=0, maximum=1),
            integer("max_tokens", "Longest reply in tokens.", max_tokens, minimum=1),
            strings("stop", "Texts that end a reply.", blank=True),
        ),
    )


DECODE = decoding(0.0, 512)

EXPERT_FIELDS: tuple[Field, ...] = (
    SPLIT,
    LIMIT,
    integer("attempts", "Trajectories for each task, over different prompt seeds.", 1, minimum=1),
    integer(
        "max_turns",
        "Leave out tasks whose expert needs more turns; null: keep all.",
        None,
        minimum=1,
        nullable=True,
    ),
    boolean("thoughts", "Write the expert's thought before each action.", True),
    seed("seed", "Base of the prompt seeds."),
    ENVIRONMENT_AT,
)

PRIVILEGED_FIELDS: tuple[Field, ...] = (SPLIT, LIMIT)

ROLLOUT_FIELDS: tuple[Field, ...] = (
    SPLIT,
    LIMIT,
    integer("attempts", "Episodes for each task, or for each prefix.", 1, minimum=1),
    PREFIX,
    integer(
        "candidates",
        "Replies that are drawn at each turn. Of more than 1 the episode goes on with the one that "
        "`critic` thinks best (best-of-N at test time: SWEET-RL, figure 3a).",
        1,
        minimum=1,
    ),
    DECODE,
    integer(
        "max_turns",
        "Step limit of an episode; null: the environment's own.",
        None,
        minimum=1,
        nullable=True,
    ),
    choice(
        "on_invalid",
        "A reply without an action: `observe` tells the agent and costs a step, of the "
        "environment's own limit too, "
        "`fail` ends the episode with the lowest reward.",
        ("observe", "fail"),
        "observe",
    ),
    choice(
        "on_overflow",
        "A prompt longer than the server's context: `end` ends the episode with "
        "the reward so far, `drop_oldest` forgets the oldest observation and the reply after it, "
        "as often as it takes, `error` fails the stage.",
        ("end", "drop_oldest", "error"),
        "end",
    ),
    seed("seed", "Base of the sampling seeds; each episode derives its own."),
    seed(
        "prompt_seed",
        "Base of the environment's prompt seeds; 0 with one attempt is the canonical prompt.",
    ),
    integer("concurrency", "Episodes in flight.", 32, minimum=1, identity="placement"),
    number(
        "error_budget",
        "Share of episodes that may end in an infrastructure error before the stage fails.",
        0.0,
        minimum=0,
        maximum=1,
        identity="placement",
    ),
    ENVIRONMENT_AT,
)

PAIR_FIELDS: tuple[Field, ...] = (
    number(
        "margin",
        "Smallest reward difference that makes a pair (exclusive; see margin_is).",
        0.0,
        minimum=0,
    ),
    choice(
        "margin_is",
        "Rewards make a pair when they differ by more than the margin (`above`), or by `at_least` "
        "that (SWEET-RL's code, whose plain comparison of floats is kept: 0.8 and 0.7 differ by "
        "0.1, and 0.7 and 0.6 by less).",
        ("above", "at_least"),
        "above",
    ),
    number(
        "chosen_at_least",
        "Smallest reward of a chosen side, up to a rounding error of 1e-9: 1.0, say, for episodes "
        "that pass all tests (SWEET-RL's code); null: any.",
        nullable=True,
    ),
    choice(
        "chosen",
        "Which explored trajectories are chosen over other explored ones: `any` that has the "
        "higher reward of two, or the `best` of its task alone, the first of equal ones "
        "(SWEET-RL's code).",
        ("any", "best"),
        "any",
    ),
    choice("on_tie", "Equal rewards: no pair, or fail.", ("drop", "error"), "drop"),
    choice(
        "on_null",
        "An episode without a reward: leave it out, score it zero, or fail. An "
        "infrastructure error is always left out.",
        ("drop", "zero", "error"),
        "drop",
    ),
    choice(
        "directions",
        "`both` also pairs explored trajectories that beat the expert; "
        "`lose_only` keeps only failures.",
        ("both", "lose_only"),
        "both",
    ),
    integer(
        "max_extra_rounds",
        "A rejected exploration is cut N rounds after the length of the chosen side (ETO's rule, "
        "for pairs with an expert); null: never. With `sources: self` the default is null.",
        5,
        minimum=0,
        nullable=True,
    ),
    choice(
        "prompt_from",
        "Whose first task message the prompt takes: the winner's, the expert's or the explorer's.",
        ("winner", "expert", "explorer"),
        "winner",
    ),
    choice(
        "sources",
        "`expert`: explored against expert. `self`: explored against explored. "
        "`expert_and_self`: both.",
        ("expert", "self", "expert_and_self"),
        "expert",
    ),
    choice(
        "contrast",
        "What of trajectories that went on from one prefix is contrasted: the whole `trajectory`, "
        "the `step` behind the prefix alone (ETO, table 4), or the `rest` from there on; by the "
        "rewards of the whole in each case. Trajectories without a prefix are contrasted whole, so "
        "that both kinds of rollouts together make a mixture.",
        ("trajectory", "step", "rest"),
        "trajectory",
    ),
    integer(
        "max_per_task",
        "Keep at most so many pairs of a task; null: all.",
        None,
        minimum=1,
        nullable=True,
    ),
    seed("seed", "Seed of the choice when max_per_task applies."),
    choice(
        "on_empty",
        "Not one pair comes out: `error` fails the stage, `publish` hands on a set without rows, "
        "for a `dpo` with `on_empty: keep_model`.",
        ("error", "publish"),
        "error",
    ),
)

POLICY = Role(name="policy", accepts=(CHECKPOINT,), doc="The model that acts.")

INTERACTION_KINDS: tuple[Kind, ...] = (
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
        name="rollout",
        doc="Let a policy act in an environment and record the episodes.",
        produces=TRAJECTORIES,
        roles=(POLICY, PREFIXES, *CHOICE),
        fields=ROLLOUT_FIELDS,
        uses=("environment", "prompt", "server"),
        default_backend="rollout.react",
        acts=True,
        collects=True,
        longest_reply="decode.max_tokens",
        forecast="episodes",
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
)

"""The kinds that meet an environment or its trajectories, with their fields: expert, privileged,
rollout, pair; and inputs that several acting kinds share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
from agentc.kinds.field import Role
from agentc.kinds.kind import Counts, Kind
from agentc.kinds.settings import fields_of
from agentc.program.settings import only_with_input, setting, unless, without_input

PREFIXES = Role(
    name="prefixes",
    accepts=(TRAJECTORIES, SEARCH_TREES),
    doc="What is cut: each episode, or tree, plays the turns before the cut again, and the policy "
    "continues from there.",
    many=True,
    optional=True,
)

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

ENVIRONMENT_AT = (
    "Where the environment is: `server`, a process of its own behind HTTP; `auto`, the process of "
    "the job's program where its software is the program's and its calls are quick, else a server. "
    "Results are the same."
)
"""The documentation of the setting `environment_at`."""

PROMPT_OF_TASK = without_input(
    "prefixes", because="an episode takes the prompt of the trajectory that it continues from"
)
"""When a stage itself says under which prompts its episodes are played."""


# fmt: off
@dataclass(frozen=True, slots=True, kw_only=True)
class OnTasks:
    """What all have that take tasks of an environment."""

    split: str = setting("Name of the environment's task split.")
    limit: int | None = setting(
        "Take only the first N tasks of the split; null: all.", None, minimum=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """How replies are sampled."""

    temperature: float = setting("0 is greedy.", 0.0, minimum=0)
    top_p: float = setting("Nucleus mass.", 1.0, above=0, maximum=1)
    max_tokens: int = setting("Longest reply in tokens.", 512, minimum=1)
    stop: tuple[str, ...] = setting("Texts that end a reply.", (), blank=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixSettings:
    """Where trajectories are cut."""

    cut: Literal["random", "every"] = setting(
        "`random`: behind one turn of each, all alike likely; `every`: behind each turn, an "
        "episode (or `attempts`) for every length.", "random")
    shortest: int = setting("Fewest turns of a prefix; 0 also begins without any.", 1, minimum=0)
    longest: int | None = setting(
        "Most turns of a prefix; null: all but the last of its trajectory.", None, minimum=0)
    max_reward: float | None = setting(
        "Cut trajectories with at most this reward; null: all of them.", None)
    counted: bool = setting(
        "Whether its turns count towards `max_turns`, or towards `depth` of a search. The "
        "environment's own limit counts them in any case.", True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertSettings(OnTasks):
    """Settings of `expert`."""

    attempts: int = setting(
        "Trajectories for each task, over different prompt seeds.", 1, minimum=1)
    max_turns: int | None = setting(
        "Leave out tasks whose expert needs more turns; null: keep all.", None, minimum=1)
    thoughts: bool = setting("Write the expert's thought before each action.", True)
    seed: int = setting("Base of the prompt seeds.", 0, seed=True)
    environment_at: Literal["auto", "server"] = setting(
        ENVIRONMENT_AT, "auto", identity="placement")


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivilegedSettings(OnTasks):
    """Settings of `privileged`."""



@dataclass(frozen=True, kw_only=True)  # beside another base: no slots
class TurnSettings:
    """How the turns of an episode end."""

    max_turns: int | None = setting(
        "Step limit of an episode; null: the environment's own.", None, minimum=1)
    on_overflow: Literal["end", "drop_oldest", "error"] = setting(
        "A prompt longer than the server's context: `end` ends the episode with the reward so "
        "far, `drop_oldest` forgets the oldest observation and the reply after it, as often as it "
        "takes, `error` fails the stage.", "end")


@dataclass(frozen=True, kw_only=True)  # beside another base: no slots
class InvalidReplies:
    """What becomes of replies without an action. Where these are the action itself is an option of
    the backend."""

    on_invalid: Literal["observe", "fail"] = setting(
        "A reply without an action: `observe` informs the agent and costs a step, of the "
        "environment's own limit too, `fail` ends the episode with the lowest reward.", "observe",
        only_if=unless("no_action", "whole_reply",
                       because="`no_action: whole_reply` takes every reply for an action"))


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledEpisodes(TurnSettings, OnTasks):
    """Episodes of a policy, in rollouts, evaluations and online RL."""

    decode: Decoding = setting("How replies are sampled.", Decoding())
    seed: int = setting("Base of the sampling seeds; each episode derives its own.", 0, seed=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedEpisodes(SampledEpisodes):
    """The same, several of each task or of each prefix."""

    attempts: int = setting("Episodes for each task, or for each prefix.", 1, minimum=1)
    prefix: PrefixSettings = setting(
        "Where the trajectories of `prefixes` are cut. At least their last turn is done again.",
        PrefixSettings(), only_if=only_with_input(
            "prefixes", because="without `prefixes` every episode begins at its start"))
    prompt_seed: int = setting(
        "Base of the environment's prompt seeds; 0 with one attempt is the canonical prompt.", 0,
        seed=True, only_if=PROMPT_OF_TASK)


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutSettings(InvalidReplies, RepeatedEpisodes):
    """Settings of `rollout`."""

    candidates: int = setting(
        "Replies that are drawn at each turn. Of more than 1 the episode continues with the one "
        "that `critic` thinks best (best-of-N at test time: SWEET-RL, figure 3a).", 1, minimum=1)
    concurrency: int = setting("Episodes in flight.", 32, minimum=1, identity="placement")
    error_budget: float = setting(
        "Share of episodes that may end in an infrastructure error before the stage fails.", 0.0,
        minimum=0, maximum=1, identity="placement")
    environment_at: Literal["auto", "server"] = setting(
        ENVIRONMENT_AT, "auto", identity="placement")


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardMargin:
    """What pairs of trajectories and pairs of single turns have in common."""

    margin: float = setting(
        "Smallest reward difference that makes a pair (exclusive; see margin_is).", 0.0, minimum=0)
    seed: int = setting("Seed of the choice when max_per_task applies.", 0, seed=True)
    on_empty: Literal["error", "publish"] = setting(
        "Not one pair comes out: `error` fails the stage, `publish` hands on a set without "
        "rows, for a `dpo` with `on_empty: keep_model`.", "error")


_WITH_EXPERT = unless("sources", "self", because="`sources: self` pairs nothing with an expert")


@dataclass(frozen=True, slots=True, kw_only=True)
class PairSettings(RewardMargin):
    """Settings of `pair`."""

    margin_is: Literal["above", "at_least"] = setting(
        "Rewards make a pair when they differ by more than the margin (`above`), or by "
        "`at_least` that (SWEET-RL's code, whose plain comparison of floats is kept: 0.8 and 0.7 "
        "differ by 0.1, and 0.7 and 0.6 by less).", "above")
    chosen_at_least: float | None = setting(
        "Smallest reward of a chosen side, up to a rounding error of 1e-9: 1.0, say, for "
        "episodes that pass all tests (SWEET-RL's code); null: any.", None)
    chosen: Literal["any", "best"] = setting(
        "Which explored trajectories are chosen over other explored ones: `any` that has the "
        "higher reward of two, or only the `best` of its task, the first of equal ones "
        "(SWEET-RL's code).", "any", only_if=unless(
            "sources", "expert",
            because="`sources: expert` pairs no explored trajectories with each other"))
    on_tie: Literal["drop", "error"] = setting("Equal rewards: no pair, or fail.", "drop")
    on_null: Literal["drop", "zero", "error"] = setting(
        "An episode without a reward: leave it out, score it zero, or fail. An infrastructure "
        "error is always left out.", "drop")
    directions: Literal["both", "lose_only"] = setting(
        "`both` also pairs explored trajectories that beat the expert; `lose_only` keeps only "
        "failures.", "both", only_if=_WITH_EXPERT)
    max_extra_rounds: int | None = setting(
        "A rejected exploration is cut N rounds after the length of the chosen side (ETO's "
        "rule, for pairs with an expert); null: never. With `sources: self` the default is null.",
        5, minimum=0)
    prompt_from: Literal["winner", "expert", "explorer"] = setting(
        "Whose first task message the prompt takes: the winner's, the expert's or the explorer's.",
        "winner", only_if=_WITH_EXPERT)
    sources: Literal["expert", "self", "expert_and_self"] = setting(
        "`expert`: explored against expert. `self`: explored against explored. "
        "`expert_and_self`: both.", "expert")
    contrast: Literal["trajectory", "step", "rest"] = setting(
        "What of trajectories that continued from one prefix is contrasted: the whole "
        "`trajectory`, only the `step` behind the prefix (ETO, table 4), or the `rest` from "
        "there on; by the rewards of the whole in each case. Trajectories without a prefix are "
        "contrasted whole, so that both kinds of rollouts together make a mixture.", "trajectory")
    max_per_task: int | None = setting(
        "Keep at most N pairs of a task; null: all.", None, minimum=1)
# fmt: on


POLICY_ALIAS = ("policy",)
"""What RL calls the model that acts or is trained."""
ACTOR = Role(name="model", accepts=(CHECKPOINT,), doc="The model that acts.", aliases=POLICY_ALIAS)
START = Role(
    name="model", accepts=(CHECKPOINT,), doc="The model to start from.", aliases=POLICY_ALIAS
)

INTERACTION_KINDS: tuple[Kind, ...] = (
    Kind(
        name="expert",
        doc="Collect expert trajectories from an environment's own planner or gold paths.",
        example="{kind: expert, environment: world, split: train}",
        produces=TRAJECTORIES,
        fields=fields_of(ExpertSettings),
        uses=("environment", "prompt"),
        default_backend="expert.planner",
        collects=True,
        forecast="demonstrations",
    ),
    Kind(
        name="privileged",
        doc="Collect what an environment hides of its tasks and a critic may know while it is "
        "trained (SWEET-RL, section 4); nothing that acts accepts it.",
        example="{kind: privileged, environment: hidden, split: train}",
        produces=PRIVILEGED_INFORMATION,
        fields=fields_of(PrivilegedSettings),
        uses=("environment",),
        default_backend="privileged.environment",
        counts=Counts(made="texts"),
        forecast="texts",
    ),
    Kind(
        name="rollout",
        doc="Let a policy act in an environment and record the episodes.",
        example="{kind: rollout, model: sft, environment: world, split: train, "
        "decode: {temperature: 1}}",
        produces=TRAJECTORIES,
        roles=(ACTOR, PREFIXES, *CHOICE),
        fields=fields_of(RolloutSettings),
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
        example="{kind: pair, expert: expert, rollouts: rollout}",
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
        fields=fields_of(PairSettings),
        default_backend="pair.contrast",
        reworks=("expert", "rollouts", "turns"),
        forecast="pairs",
    ),
)

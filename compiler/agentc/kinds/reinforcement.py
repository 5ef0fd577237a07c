"""The kinds that learn from rewards, `online_rl` and `offline_rl`, and `checkpoint`, which picks a
policy of a run, with their fields.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from agentc.kinds.artifacts import CHECKPOINT, POLICY_RUN, TEXT_ENCODER, TRAJECTORIES
from agentc.kinds.field import Role
from agentc.kinds.interaction import ENVIRONMENT_AT, START, Decoding, OnTasks
from agentc.kinds.kind import Kind
from agentc.kinds.settings import fields_of
from agentc.program.settings import only_with, only_with_input, setting

ValueTarget: TypeAlias = Literal["policy", "data", "return", "expectile"]
"""What V is trained towards: the target critic's Q of a fresh reply of the policy (the paper's), of
the stored reply (SARSA), the episode's own return to go, or an expectile of Q over stored replies
(IQL)."""


# fmt: off
_ENCODER_GIVEN = only_with_input(
    "encoder", because="the critic reads with the policy's body (no `encoder`)")


@dataclass(frozen=True, kw_only=True)  # beside another base: no slots
class EncoderReading:
    """How the critic's encoder reads."""

    pool: Literal["pooler", "first", "last", "mean"] = setting(
        "What represents a text that an `encoder` read: its `pooler`, as released, the `first` "
        "token, the `last` one, or the `mean` of all.", "pooler", only_if=_ENCODER_GIVEN)
    max_length: int = setting(
        "Tokens of an `encoder` that are read of a text, its last ones.", 512, minimum=8,
        only_if=_ENCODER_GIVEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class CriticSteps:
    """How a critic of utterances is trained in an iteration (ArCHer, algorithm 1)."""

    lr: float = setting("Learning rate of Adam.", 2e-05, above=0)
    updates: int = setting("Gradient steps in an iteration.", 50, minimum=1)
    batch: int = setting("Utterances in a step, drawn evenly and with replacement.", 256, minimum=1)
    target_rate: float = setting(
        "Share of the way that the slow copy goes after each step (Polyak).", 0.1, above=0,
        maximum=1)
    value_target: ValueTarget = setting(
        "The target of a state's value: the slow copy's value of a reply of the `policy` "
        "as it is now (the paper's), of the stored one in the `data` (SARSA), the episode's own "
        "discounted `return`, or the `expectile` of the stored ones (IQL).", "policy")
    expectile: float = setting(
        "That expectile (value_target: expectile).", 0.9, above=0.5, below=1,
        only_if=only_with("value_target", "expectile",
                          because="`critic.value_target` is no expectile"))
    hidden: int | None = setting(
        "Width of the heads; null: that of the model under them.", None, minimum=1)
    start: float = setting(
        "What all heads say before the first step. Far from the returns of the first policy, "
        "the first steps would go only into the offset.", 0.0)
    max_grad_norm: float = setting(
        "Norm to which the critic's own gradient is clipped; 0: not.", 1.0, minimum=0)


@dataclass(frozen=True, kw_only=True)
class UtteranceCritic(EncoderReading, CriticSteps):
    """The group `critic`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorSteps:
    """How the policy is trained."""

    lr: float = setting("Learning rate of Adam.", 1e-05, above=0)
    updates: int = setting("Gradient steps in an iteration.", 3, minimum=1)
    batch: int = setting("Utterances in a step.", 256, minimum=1)
    advantage: Literal["plain", "centred"] = setting(
        "What a fresh reply is weighted with: the smaller value of state and reply less the "
        "smaller one of the state, as it is (`plain`, the paper's), or less the mean of the "
        "step's (`centred`).", "plain")
    kl_penalty: float = setting(
        "Taken off the advantage for each nat by which the policy likes its reply better than "
        "the model that it started from: in units of reward, to be set beside `advantage.sd` of "
        "the curve.", 0.0, minimum=0)
    max_grad_norm: float = setting("Norm to which the gradient is clipped; 0: not.", 1.0, minimum=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batches:
    """How utterances are drawn for a step."""

    by: Literal["utterances", "episodes"] = setting(
        "What a step of critic or actor draws: `utterances`, each for itself; or whole "
        "`episodes`, until they hold a batch or more. A critic on the policy's own body reads all "
        "states of an episode in one pass, so that these cost a fraction of the time, and vary "
        "more from step to step.", "utterances")


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer(Batches):
    """What is learnt from again."""

    capacity: int = setting("Utterances at most.", 100000, minimum=1)
    episodes: int | None = setting(
        "Only the newest episodes, this many; null: any.", None, minimum=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvaluation:
    """Evaluations within the run."""

    split: str = setting("Name of the environment's split.")
    limit: int | None = setting(
        "Take only the first N tasks of the split; null: all.", None, minimum=1)
    every: int = setting("Iterations between two evaluations.", 10, minimum=1)
    attempts: int = setting("Episodes for each task.", 1, minimum=1)
    temperature: float = setting("0 is greedy.", 1.0, minimum=0)
    seed: int = setting("Base of the sampling seeds.", 0, seed=True)


@dataclass(frozen=True, kw_only=True)  # beside another base: no slots
class RunSettings:
    """What runs of RL have in common, online and offline."""

    algorithm: str | None = setting(
        "How the policy learns: an algorithm that an installed backend implements. Null: that of "
        "`backend`; without one ArCHer.", None)
    iterations: int = setting(
        "Rounds of acting and learning; behind a `start`, of this stage.", minimum=1)
    warmup: int = setting("Iterations before the policy's first update.", 0, minimum=0)
    keep: tuple[int, ...] = setting(
        "Keep the policies after these iterations too, for stages of kind `checkpoint`.", (),
        schema={"type": "array", "items": {"type": "integer", "minimum": 0}, "uniqueItems": True})
    publish_state: bool = setting(
        "Publish critic and optimisers too, so that another stage can continue from it (`start`); "
        "they take about three times what the models take.", True)
    micro_batch: int = setting(
        "Rows that go through a model at once.", 64, minimum=1, identity="placement")
    save_every: int | None = setting(
        "Iterations between resumable states; null: as often as costs a twentieth of the time.",
        None, minimum=1, identity="placement")
    seed: int = setting("Of all chance: tasks, replies, batches.", 0, seed=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class OnlineRlSettings(RunSettings, OnTasks):
    """Settings of `online_rl`."""

    tasks: Literal["draw", "cycle"] = setting(
        "Which tasks an iteration plays: `draw`, evenly and with replacement; `cycle`, the "
        "split's in their order, again and again.", "draw")
    decode: Decoding = setting("How replies are sampled.", Decoding(temperature=1.0, max_tokens=32))
    max_turns: int | None = setting(
        "Step limit of an episode; null: the environment's own.", None, minimum=1)
    on_invalid: Literal["observe", "fail"] = setting(
        "A reply without an action: `observe` informs the agent and costs a step, `fail` ends the "
        "episode with the lowest reward.", "observe")
    on_overflow: Literal["error", "drop_oldest", "end"] = setting(
        "A prompt longer than the model's context: `error` fails the stage; `drop_oldest` "
        "forgets the oldest observation and the reply after it; `end` ends the episode with the "
        "reward so far, which pays for talking until the context is full wherever each turn costs "
        "something.", "error")
    episodes: int = setting("Episodes of an iteration.", minimum=1)
    discount: float = setting("Worth of a reward one turn later.", 0.95, minimum=0, maximum=1)
    buffer: Buffer = setting("What is learnt from again: the newest utterances.", Buffer())
    critic: UtteranceCritic = setting(
        "How the critic of utterances is trained: two values of a state and a reply, two of a "
        "state (ArCHer, section 3).", UtteranceCritic())
    actor: ActorSteps = setting("How the policy is trained in each iteration.", ActorSteps())
    evaluate: RunEvaluation | None = setting(
        "Evaluate the policy within the run: before the first update, every N iterations, "
        "and at the end.", None)
    concurrency: int = setting("Episodes in flight.", 64, minimum=1, identity="placement")
    environment_at: Literal["auto", "server"] = setting(
        ENVIRONMENT_AT, "auto", identity="placement")


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineActorSteps(ActorSteps):
    """How the policy is trained on recorded episodes."""

    objective: Literal["awr", "policy_gradient"] = setting(
        "`awr`: imitate stored replies, each weighted by exp(advantage / temperature), "
        "advantage being the smaller value of state and reply less the smaller one of the state "
        "(advantage-weighted regression, the paper's); `policy_gradient`: weight fresh replies by "
        "their advantages, as online.", "awr")
    temperature: float = setting(
        "Of these weights: the lower, the more the best replies count (objective: awr).", 1.0,
        above=0)
    clip_weight: float | None = setting(
        "The largest weight; null: any (objective: awr).", None, above=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineRlSettings(RunSettings):
    """Settings of `offline_rl`."""

    rewards: Literal["sum", "terminal", "latest", "max"] = setting(
        "How rewards of turns make an episode's, as its environment has it: `sum` adds them, "
        "`terminal` takes the last one for the whole, `latest` and `max` are the state so far, so "
        "that a turn earns what it changes. Compared with each episode's reward.", "sum")
    decode: Decoding = setting("How replies are sampled.", Decoding(temperature=1.0, max_tokens=32))
    iterations: int = setting(
        "Rounds of learning: all steps of the critic, then all of the policy.", minimum=1)
    discount: float = setting("Worth of a reward one turn later.", 0.99, minimum=0, maximum=1)
    buffer: Batches = setting("How the episodes are learnt from.", Batches())
    critic: UtteranceCritic = setting(
        "How the critic of utterances is trained: two values of a state and a reply, two of a "
        "state (ArCHer, section 3).",
        UtteranceCritic(lr=1e-5, batch=128, target_rate=0.05, value_target="expectile"))
    actor: OfflineActorSteps = setting(
        "How the policy is trained in each iteration, after the critic.",
        OfflineActorSteps(lr=1e-4, updates=50, batch=128))


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointSettings:
    """Settings of `checkpoint`."""

    at: int | None = setting(
        "The iteration after which the policy is taken; null: the last.", None, minimum=0)
# fmt: on


NOT_ONLINE = {
    "openrlhf": "OpenRLHF's RL (0.11) imports vLLM, starts its models on Ray workers with GPUs "
    "and calls CUDA by name: none of it runs without GPUs, and the software here has no Ray; "
    "its `sft` and `dpo` are there",
    "verl": "verl's RL trains on Ray workers with GPUs, and 0.9.1 wants transformers below 5.11: "
    "none of it runs without GPUs or beside the software here",
}
"""Trainers of agents that have no backend here, and why."""

_ENCODER = Role(
    name="encoder",
    accepts=(TEXT_ENCODER,),
    doc="What the critic reads with; without it a copy of the policy's own body.",
    optional=True,
)

REINFORCEMENT_KINDS: tuple[Kind, ...] = (
    Kind(
        name="online_rl",
        doc="Let a policy act and learn in turns, in one job that continues where it was cut off "
        "(ArCHer and its rivals).",
        example="{kind: online_rl, model: sft, environment: world, split: train, "
        "iterations: 50, episodes: 32}",
        produces=POLICY_RUN,
        roles=(
            START,
            _ENCODER,
            Role(
                name="start",
                accepts=(POLICY_RUN,),
                doc="A run that this one continues from as if it had been longer; `model` is "
                "still what that one began with.",
                optional=True,
            ),
        ),
        fields=fields_of(OnlineRlSettings),
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
        example="{kind: offline_rl, model: sft, data: rollout, iterations: 10}",
        produces=POLICY_RUN,
        roles=(
            START,
            Role(
                name="data",
                accepts=(TRAJECTORIES,),
                doc="The episodes, with the rewards of their turns. Those that ended in an error "
                "do not count.",
                many=True,
            ),
            _ENCODER,
        ),
        fields=fields_of(OfflineRlSettings),
        default_backend="archer.offline_rl",
        forecast="experience",
    ),
    Kind(
        name="checkpoint",
        doc="Take a policy out of a run of RL.",
        example="{kind: checkpoint, run: online_rl}",
        produces=CHECKPOINT,
        roles=(Role(name="run", accepts=(POLICY_RUN,), doc="The run."),),
        fields=fields_of(CheckpointSettings),
        default_backend="pick.checkpoint",
    ),
)

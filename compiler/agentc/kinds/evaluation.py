"""The kinds that measure and conclude, with their fields: `evaluate`, `benchmark`, `measure`,
`compare`, `verdicts`, `report`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agentc.kinds.artifacts import (
    CHECKPOINT,
    COMPARISON,
    METRICS,
    REPORT,
    SEARCH_TREES,
    SFT_DATASET,
    TRAJECTORIES,
    VERDICTS,
)
from agentc.kinds.field import Role
from agentc.kinds.interaction import ACTOR, CHOICE, POLICY_ALIAS, PREFIXES, RolloutSettings
from agentc.kinds.kind import REPORT_KIND, VERDICTS_KIND, Counts, Kind
from agentc.kinds.script import RANGE
from agentc.kinds.settings import fields_of
from agentc.program.settings import setting


# fmt: off
@dataclass(frozen=True, slots=True, kw_only=True)
class Loops:
    """What counts as a loop of actions."""

    times: int = setting("A block is a loop when it occurs N times in a row.", 2, minimum=2)
    longest: int = setting("Actions in the longest block that is looked for.", 10, minimum=1)


@dataclass(frozen=True, kw_only=True)  # beside another base: no slots
class Measures:
    """What is measured of episodes."""

    success_at: float | None = setting(
        "Reward from which an episode is a success; null: the environment's own predicate.", None)
    best_of: tuple[int, ...] = setting(
        "Measure, for each k of the list, what k attempts at a task are worth together: "
        "`best_of(k)`, the expected largest reward, and `pass_at(k)`, the chance that one "
        "succeeds. Both are over all choices of k of the task's attempts, so that they are "
        "unbiased.", (),
        schema={"type": "array", "items": {"type": "integer", "minimum": 1}, "uniqueItems": True})
    loops: Loops | None = setting(
        "Measure `loops`, the share of episodes in which a block of actions is repeated at once "
        "(Agent-R, figure 4), and how often blocks of each length are. A reply without an action "
        "counts as an action of its own.", None)
    confidence: float = setting("Coverage of the intervals.", 0.95, above=0, maximum=0.9999)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluateSettings(Measures, RolloutSettings):
    """Settings of `evaluate`."""



@dataclass(frozen=True, kw_only=True)  # beside another base: no slots
class BenchmarkDecode:
    """How replies are sampled, where the stage says it."""

    temperature: float | None = setting("0 is greedy; null: as the task says.", None, minimum=0)
    max_tokens: int | None = setting(
        "Longest reply in tokens; null: as the task says.", None, minimum=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkRun:
    """What an evaluator is run with, whichever it is."""

    metric: str | None = setting(
        "Which of the evaluator's measures of a sample is the score; null: the only one that "
        "there is.", None)
    limit: int | None = setting(
        "Only the first N samples of each task; null: all.", None, minimum=1)
    success_at: float | None = setting(
        "Score from which a sample is a success; null: only scores are reported.", None)
    seed: int = setting(
        "The evaluator's seed: of its examples, and of requests where it sends one.", 0, seed=True)
    network: bool = setting("Whether it may use the network.", False)


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkSettings(BenchmarkRun):
    """Settings of `benchmark`."""

    tasks: tuple[str, ...] = setting(
        "Tasks by the names that the evaluator knows, or custom files, relative to the "
        "spec, as the backend has them.", ())
    sources: tuple[str, ...] = setting(
        "Further files of text that these read, relative to the spec: data, Python. They are "
        "found under the same names in the folder that the evaluator is started in.", ())
    decode: BenchmarkDecode = setting(
        "How replies are sampled, where the stage and not the task says it.", BenchmarkDecode())
    range: tuple[float, ...] = setting(
        "The lowest and the highest score that a sample can get; intervals and claims depend on "
        "it, and a score outside of it fails the stage.", (0.0, 1.0), schema=RANGE)
    concurrency: int = setting("Requests in flight.", 8, minimum=1, identity="placement")
    confidence: float = setting("Coverage of the intervals.", 0.95, above=0, maximum=0.9999)


@dataclass(frozen=True, kw_only=True)  # beside another base: no slots
class SearchAnswer:
    """Which path of a search tree is measured."""

    answer: Literal["robust_child", "max_child", "best_leaf"] = setting(
        "Which path of a tree is the search's answer: `robust_child`, from the root on the "
        "child that was tried most often; `max_child`, the one with the highest mean reward; "
        "`best_leaf`, the end with the highest reward, as an oracle would choose.", "robust_child")


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureSettings(Measures, SearchAnswer):
    """Settings of `measure`."""



@dataclass(frozen=True, slots=True, kw_only=True)
class CompareSettings:
    """Settings of `compare`."""

    confidence: float = setting("Coverage of the intervals.", 0.95, above=0, maximum=0.9999)
    wins: bool = setting(
        "Add to each evaluation its win rate: the share of tasks on which its reward is above "
        "the baseline's, a tie counted as a half.", False)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictSettings:
    """Settings of `verdicts`."""

    confidence: float = setting("Coverage of the intervals.", 0.95, minimum=0.5, maximum=0.9999)
    power: float = setting(
        "Share of runs in which a difference of the size called detectable would be noticed.", 0.8,
        minimum=0.5, maximum=0.9999)
# fmt: on


EVALUATION_KINDS: tuple[Kind, ...] = (
    Kind(
        name="evaluate",
        doc="Roll a policy out on a split and measure reward and success, with intervals.",
        example="{kind: evaluate, model: sft, environment: world, split: test}",
        produces=METRICS,
        roles=(ACTOR, PREFIXES, *CHOICE),
        fields=fields_of(EvaluateSettings),
        uses=("environment", "prompt", "server"),
        default_backend="evaluate.agent",
        acts=True,
        longest_reply="decode.max_tokens",
    ),
    Kind(
        name="benchmark",
        doc="Score a model on tasks of an external evaluator, which calls the stage's server: a "
        "score of every sample, with intervals.",
        example="{kind: benchmark, model: sft, tasks: [gsm8k]}",
        produces=METRICS,
        roles=(
            Role(
                name="model",
                accepts=(CHECKPOINT,),
                doc="The model that answers.",
                aliases=POLICY_ALIAS,
            ),
        ),
        fields=fields_of(BenchmarkSettings),
        uses=("server",),
        default_backend="benchmark.lm_eval",
        counts=Counts(made="rows"),
        forecast="unknown",
    ),
    Kind(
        name="measure",
        doc="Measure reward and success of episodes that are there: trajectories, or the answer "
        "of each search tree.",
        example="{kind: measure, of: rollout, environment: world}",
        produces=METRICS,
        roles=(
            Role(
                name="of",
                accepts=(TRAJECTORIES, SEARCH_TREES),
                doc="The episodes, or the searches.",
            ),
        ),
        fields=fields_of(MeasureSettings),
        uses=("environment",),
        default_backend="measure.episodes",
    ),
    Kind(
        name="compare",
        doc="One table over several evaluations, or several revisions, with paired differences on "
        "the same tasks.",
        example="{kind: compare, of: [evaluate_base, evaluate]}",
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
        fields=fields_of(CompareSettings),
        default_backend="compare.paired",
    ),
    Kind(
        name=VERDICTS_KIND,
        doc="Test the claims of the spec on its evaluations; added to every plan that has some.",
        produces=VERDICTS,
        fields=fields_of(VerdictSettings),
        default_backend="verdicts.claims",
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

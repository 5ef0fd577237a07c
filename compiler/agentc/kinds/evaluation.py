"""Fields of `evaluate`, `benchmark`, `measure`, `compare` and `judge`."""

from agentc.kinds.field import (
    Field,
    boolean,
    choice,
    group,
    integer,
    number,
    seed,
    string,
    strings,
)
from agentc.kinds.interaction import ROLLOUT_FIELDS
from agentc.kinds.script import NETWORK, score_range

_INTERVAL: tuple[Field, ...] = (
    number("confidence", "Coverage of the intervals.", 0.95, above=0, maximum=0.9999),
)

_LOOPS = group(
    "loops",
    "Measure `loops`, the share of episodes in which a block of actions is repeated at once "
    "(Agent-R, figure 4), and how often blocks of each length are. A reply without an action "
    "counts as an action of its own.",
    (
        integer("times", "A block is a loop when it stands so many times in a row.", 2, minimum=2),
        integer("longest", "Actions in the longest block that is looked for.", 10, minimum=1),
    ),
    nullable=True,
)

_SUCCESS_AT = number(
    "success_at",
    "Reward from which an episode is a success; null: the environment's own predicate.",
    None,
    nullable=True,
)

_BEST_OF = Field(
    name="best_of",
    schema={"type": "array", "items": {"type": "integer", "minimum": 1}, "uniqueItems": True},
    doc="Measure, for each k of the list, what k attempts at a task are worth together: "
    "`best_of(k)`, the expected largest reward, and `pass_at(k)`, the chance that one succeeds. "
    "Both are over all choices of k of the task's attempts, so that they are unbiased.",
    default=[],
)

EVALUATE_FIELDS: tuple[Field, ...] = (*ROLLOUT_FIELDS, _SUCCESS_AT, _BEST_OF, _LOOPS, *_INTERVAL)

BENCHMARK_FIELDS: tuple[Field, ...] = (
    strings("tasks", "Tasks by the names that the evaluator knows, or files of your own, relative "
            "to the spec, as the backend has them."),
    strings("sources", "Further files of text that these read, relative to the spec: data, Python. "
            "They are found under the same names in the folder that the evaluator is started in."),
    string("metric", "Which of the evaluator's measures of a sample is the score; null: the only "
           "one that there is.", nullable=True),
    integer("limit", "Only the first so many samples of each task; null: all.", None, minimum=1,
            nullable=True),
    group("decode", "How replies are sampled, where the stage and not the task says it.", (
        number("temperature", "0 is greedy; null: as the task says.", None, minimum=0,
               nullable=True),
        integer("max_tokens", "Longest reply in tokens; null: as the task says.", None, minimum=1,
                nullable=True),
    )),
    number("success_at", "Score from which a sample is a success; null: only scores are told.",
           None, nullable=True),
    score_range("The lowest and the highest score that a sample can get; intervals and claims rest "
                "on it, and a score outside of it fails the stage."),
    seed("seed", "The evaluator's seed: of its examples, and of requests where it sends one."),
    integer("concurrency", "Requests in flight.", 8, minimum=1, identity="placement"),
    NETWORK,
    *_INTERVAL,
)  # fmt: skip

MEASURE_FIELDS: tuple[Field, ...] = (
    choice(
        "answer",
        "Which path of a tree is the search's answer: `robust_child`, from the root on the child "
        "that was tried most often; `max_child`, the one with the highest mean reward; "
        "`best_leaf`, the end with the highest reward, as an oracle would choose.",
        ("robust_child", "max_child", "best_leaf"),
        "robust_child",
    ),
    _SUCCESS_AT,
    _BEST_OF,
    _LOOPS,
    *_INTERVAL,
)

COMPARE_FIELDS: tuple[Field, ...] = (
    *_INTERVAL,
    boolean(
        "wins",
        "Add to each evaluation its win rate: the share of tasks on which its reward is above the "
        "baseline's, a tie counted as a half.",
        False,
    ),
)

JUDGE_FIELDS: tuple[Field, ...] = (
    number("confidence", "Coverage of the intervals.", 0.95, minimum=0.5, maximum=0.9999),
    number(
        "power",
        "Share of runs in which a difference of the size called detectable would be noticed.",
        0.8,
        minimum=0.5,
        maximum=0.9999,
    ),
)

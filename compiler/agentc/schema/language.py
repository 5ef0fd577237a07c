"""The keys of the language that belong to no stage kind: the top level, params, prompts, repeats,
... Longer than other modules: one table, read from top to bottom.
"""

from __future__ import annotations

from agentc.kinds.field import (
    REQUIRED,
    Field,
    boolean,
    choice,
    group,
    integer,
    number,
    string,
    strings,
)
from agentc.kinds.interaction import OBSERVATION_PREFIX
from agentc.kinds.metric_names import METRIC_PATTERN

VERSION = 1
NAME_PATTERN = "^[a-z][a-z0-9_]*$"
EXPERIMENT_PATTERN = "^[a-z0-9][a-z0-9_-]*$"
LONGEST_NAME = 64
"""Names become parts of file names, alone and joined: `<experiment>/<repeat>.<round>.<stage>`."""
PARAM_TYPES = ("int", "float", "bool", "str", "list")

EXPRESSION_FUNCTIONS = ("abs", "float", "int", "len", "max", "min", "range", "secret", "str")
"""What `{{ }}` may call; `front/expression_sandbox.py` has what each does."""
_EXPRESSION_WORDS = (
    "and", "else", "false", "False", "if", "in", "is", "none", "None", "not", "or", "round",
    "self", "true", "True",
)  # fmt: skip
RESERVED_NAMES = frozenset({*EXPRESSION_FUNCTIONS, *_EXPRESSION_WORDS})
"""Words of expressions that no param may be called."""

TOP_LEVEL: dict[str, str] = {
    "agentc": "Version of the spec language: 1.",
    "name": "Name of the experiment: small letters, digits, `_` and `-`.",
    "description": "What the experiment shows, in a few sentences.",
    "use": "A template whose body this spec starts from; what the spec says itself comes on top.",
    "with": "Values of the template's parameters.",
    "append": "Items that go behind the lists of the template.",
    "paper": "The paper that the spec reproduces.",
    "params": "Typed settings that `-p name=value` changes and `{{ name }}` uses.",
    "matrix": "Values of params, each combination of which is run: seeds, models, anything.",
    "scales": "Smaller versions of the experiment, by name; `--scale smoke` chooses one.",
    "models": "Models to start from: `base: owner/name` of the hub, `base: ./folder`, or the "
    "settings of a stage of kind `model`.",
    "backends": "Python files and packages beside the spec that hold backends of its own; "
    "`--allow-code` lets them run.",
    "environments": "Environments that agents act in.",
    "servers": "How checkpoints are served while they act.",
    "prompts": "Prompts, shared by training and evaluation.",
    "software": "Locks of the spec's own for software stacks that backends bring along.",
    "defaults": "Values for every stage that has such a key and does not set it.",
    "stages": "What is done, as a graph of stages and repeats.",
    "claims": "What the paper says of its evaluations, by name; the last stage judges each.",
    "budget": "What a run may cost at most; `agentc run` refuses more.",
    "track": "Where curves and results are written to, too: `trackio`, a list of trackers, or each "
    "with its settings. No result and no key depends on it.",
    "search": "Params that `agentc search` looks for values of, and the measure they are chosen "
    "by. No result and no key depends on it.",
    "discrepancies": "Where paper and code disagree, and which side this spec takes.",
}

MODEL_TEXT = (
    "A repository of the Hugging Face hub, `owner/name`, or a folder: short for `{repo: ...}` or "
    "`{path: ...}`. A folder of that name beside the spec comes first."
)

USE_KEYS: dict[str, str] = {
    "use": "A template: `dpo` of the bundled ones, or `./mine.yaml` beside the spec.",
    "with": "Values of the template's parameters.",
    "append": "Items that go behind the template's lists; other keys replace or merge.",
}
SCALE_KEYS: dict[str, str] = {
    "params": "Other defaults of params: `{rounds: 1}`.",
    "matrix": "Fewer values to sweep over.",
    "budget": "Other amounts.",
    "search": "Fewer trials.",
    "defaults": "Other values for every stage.",
    "models": "Settings of models.",
    "environments": "Settings of environments.",
    "servers": "Settings of servers.",
    "prompts": "Settings of prompts.",
    "stages": "Settings of stages.",
}
TEMPLATE_KEYS: dict[str, str] = {
    "agentc": "Version of the spec language: 1.",
    "template": "What the body is: a stage, a whole spec, an environment, ...",
    "doc": "What the template is for.",
    "params": "Typed parameters, for `with:` to set and `{{ name }}` to use.",
    "body": "What is in the place of `use`.",
}
TEMPLATES: dict[str, str] = {
    "spec": "",
    "paper": "paper",
    "defaults": "defaults",
    "model": "models",
    "environment": "environments",
    "server": "servers",
    "prompt": "prompts",
    "stage": "stages",
}
"""What templates make, and the section of a spec that each belongs in."""

TOP_LEVEL_FIELDS: tuple[Field, ...] = (
    string("name", TOP_LEVEL["name"], REQUIRED, pattern=EXPERIMENT_PATTERN,
           longest=LONGEST_NAME, identity="metadata"),
    string("description", TOP_LEVEL["description"], nullable=True, identity="metadata"),
)  # fmt: skip

PARAM_FIELDS: tuple[Field, ...] = (
    choice("type", "Type of the value.", PARAM_TYPES, REQUIRED),
    Field(name="default", schema={}, doc="Value when `-p` gives none; without it, `-p` must."),
    string("doc", "What the param is for.", nullable=True, identity="metadata"),
    number("min", "Smallest value allowed (of each item, for a list).", nullable=True),
    number("max", "Largest value allowed (of each item, for a list).", nullable=True),
    Field(
        name="choices",
        schema={"type": ["array", "null"], "minItems": 1},
        doc="The values allowed (for each item, for a list).",
    ),
)

MESSAGE_FIELDS: tuple[Field, ...] = (
    choice("role", "Who speaks.", ("user", "assistant"), REQUIRED),
    string("content", "The text of the message.", REQUIRED, blank=True),
)

PROMPT_FIELDS: tuple[Field, ...] = (
    string(
        "system",
        "A system message before all others, in training as in acting; null: none. Every built-in "
        "chat format writes one; a template that a tokenizer ships may refuse it.",
        nullable=True,
        blank=True,
    ),
    string("instruction", "The first message of every conversation.", REQUIRED, blank=True),
    choice(
        "role",
        "Who says the instruction: the `user`, or the `system`, whose message it then is; nobody "
        "acknowledges that.",
        ("user", "system"),
        "user",
    ),
    string(
        "acknowledgement",
        "The agent's reply to the instruction, such as `OK`.",
        nullable=True,
        blank=True,
    ),
    string(
        "observation_prefix",
        "What is before each observation that answers an action, its last space or line break "
        "included; empty: nothing.",
        OBSERVATION_PREFIX,
        blank=True,
    ),
    choice(
        "reply_format",
        "`react`: a thought, then `Action:` on a line of its own; `react_inline`: both on "
        "one line; `action_only`: nothing but the action; `text`: the whole reply, with all of its "
        "lines, is the action, an empty one too; `tools`: a call of the function `act`, whose "
        "`action` it is, by the notation of the chat template or Hermes'.",
        ("react", "react_inline", "action_only", "text", "tools"),
        "react",
    ),
    choice(
        "memory",
        "What the agent is shown at each turn: `all` of the conversation, or only the "
        "`last` observation, in the place of the task behind the instruction and its "
        "acknowledgement. For tasks whose observations say all there is to know.",
        ("all", "last"),
        "all",
    ),
    string(
        "output_marker",
        "What follows this text in a reply (up to the next one) is what the environment and later "
        "turns see, such as `OUTPUT:` after thoughts; training is on the whole reply. A reply "
        "without it is seen whole; null: all are.",
        nullable=True,
        pattern=r"^\S(.*\S)?$",
    ),
)
EXAMPLES_DOC = "In-context conversations, each a list of {role, content}, user first, taking turns."

PROMPT_KEYS: dict[str, str] = {"examples": EXAMPLES_DOC, "doc": "A note for readers."}

PAPER_FIELDS: tuple[Field, ...] = (
    string("title", "Title.", nullable=True, identity="metadata"),
    strings("authors", "Authors.", identity="metadata"),
    string("venue", "Where it appeared.", nullable=True, identity="metadata"),
    integer("year", "When it appeared.", nullable=True, identity="metadata"),
    string("url", "Where to read it.", nullable=True, identity="metadata"),
    string("arxiv", "Number on arXiv.", nullable=True, identity="metadata"),
    string("doi", "Digital object identifier.", nullable=True, identity="metadata"),
    string("code", "Where the authors' code is.", nullable=True, identity="metadata"),
)

DISCREPANCY_FIELDS: tuple[Field, ...] = (
    string("what", "The setting or step in question.", REQUIRED, identity="metadata"),
    string("paper", "What the paper says.", REQUIRED, identity="metadata"),
    string("code", "What the authors' code does.", REQUIRED, identity="metadata"),
    string("chosen", "What this spec does, and why.", REQUIRED, identity="metadata"),
)

CLAIM_FIELDS: tuple[Field, ...] = (
    string("what", "What the number is of: method, model, test set; null: the claim's name.",
           nullable=True),
    string("table", "Where the paper prints it: `Table 2, row ETO`.", nullable=True),
    string("stage", "The evaluate stage that measures it (a revise stage for `revision_length` and "
           "`revised`, a run of RL for `trajectories_to`); `eto.evaluate` is the last round's.",
           REQUIRED),
    string("difference_from", "Another evaluate stage on the same tasks: the claim is about the "
           "first minus this one, paired by task; with `win_rate`, about how often the first wins "
           "over this one.", nullable=True),
    string("metric", "What is measured of each task: `reward`, `success`; what the evaluation is "
           "asked for, `best_of(k)`, `pass_at(k)` or `loops`; of a revise stage, "
           "`revision_length`, the number of the first wrong action, and `revised`, the share of "
           "bad trajectories in which the actor found one; `cosine` or `composite`, which is the "
           "reward where the environment calls it so; of two evaluations `win_rate`, the "
           "share of tasks on which `stage` has a higher reward than `difference_from`, a tie "
           "counted as a half; of a run of RL `trajectories_to`, `steps_to` or `tokens_to`, how "
           "many trajectories, steps of the environment or tokens of replies it took until its "
           "return was at least `reach`.", "reward",
           pattern=METRIC_PATTERN),
    number("reach", "That return (`trajectories_to` and its like).", nullable=True),
    string("ratio_to", "Another run of RL on the same tasks: the claim is about what the first one "
           "took as a share of what this one took (`trajectories_to` and its like).",
           nullable=True),
    string("difference_metric", "What is measured of `difference_from`; null: the same.",
           nullable=True, pattern=METRIC_PATTERN),
    number("value", "The number that the paper prints.", nullable=True),
    number("above", "The claim is only that the number is above this one, such as a difference "
           "above 0.", nullable=True),
    number("below", "The claim is only that the number is below this one.", nullable=True),
    boolean("percent", "The paper prints points of a hundred: 67.4 for 0.674. Holds for `value`, "
            "`above`, `below` and `tolerance`.", False),
    number("tolerance", "How far from `value` a result may lie and still count as the same, in "
           "the same unit; null: as far as the paper's own n leaves open.", above=0,
           nullable=True),
    integer("n", "Number of test tasks behind the paper's number.", minimum=1, nullable=True),
    integer("seeds", "Number of training runs that the paper took the mean of.", minimum=1,
            nullable=True),
    Field(
        name="needs",
        schema={"type": ["object", "null"]},
        doc="Settings without which the number is of something else, such as the published tasks: "
        "`environment.SETTING` of the stage's environment or `params.NAME`, each with the value "
        "that it must have, or `{not: VALUE}` for any other one. Where one differs, numbers are "
        "shown and the verdict is `not judged`.",
    ),
    strings("over", "Params of the `matrix` whose values are runs of one experiment, such as its "
            "seeds: the claim is about the mean of the runs."),
    boolean("gate", "`agentc run` and `agentc report --claims` exit with 6 when it is not "
            "reproduced, or contradicted.", False),
)  # fmt: skip

GPU_TYPES = (
    *("t4", "v100", "rtx3090", "rtx4090", "a10", "a6000"),
    *("l4", "l40s", "a100", "h100", "h200", "b200"),
)
"""GPUs whose speed is known (agentc.cost.hardware)."""

BUDGET_FIELDS: tuple[Field, ...] = (
    number("wall_hours", "Hours from start to end, on the cores that the run has.", nullable=True,
           minimum=0, identity="metadata"),
    number("gpu_hours", "GPUs that jobs hold, times hours.", nullable=True, minimum=0,
           identity="metadata"),
    number("tokens", "Tokens through models, in training and in acting, each pass counted.",
           nullable=True, minimum=0, identity="metadata"),
    number("disk_gb", "Gigabytes (1e9 bytes) that stay in the store.", nullable=True, minimum=0,
           identity="metadata"),
    choice("quantile", "What has to be within the budget: the middle of the estimate (`p50`), its "
           "low end (`p10`) or its high end (`p90`).", ("p10", "p50", "p90"), "p50",
           identity="metadata"),
    choice("gpu", "The type of GPU that stages get.", GPU_TYPES, "a100", identity="metadata"),
)  # fmt: skip

SEARCH_RANGE_FIELDS: tuple[Field, ...] = (
    number("low", "The least value.", REQUIRED, identity="metadata"),
    number("high", "The greatest value.", REQUIRED, identity="metadata"),
    boolean("log", "Whether factors matter, not differences.", False, identity="metadata"),
    number("step", "The distance from one value to the next.", above=0, nullable=True,
           identity="metadata"),
)  # fmt: skip

SEARCH_FIELDS: tuple[Field, ...] = (
    Field(
        name="over",
        schema={
            "type": "object",
            "minProperties": 1,
            "additionalProperties": {
                "anyOf": [
                    {"type": "array", "minItems": 1},
                    {
                        "type": "object",
                        "properties": {
                            field.name: {**field.schema, "description": field.doc}
                            for field in SEARCH_RANGE_FIELDS
                        },
                        "required": ["low", "high"],
                        "additionalProperties": False,
                    },
                ]
            },
        },
        doc="Params and their values: a list, as in `matrix`, or `{low: 1e-6, high: 1e-3}`, both "
        "included, with `log: true` for factors and `step` for a grid.",
        default=REQUIRED,
        identity="metadata",
    ),
    string("stage", "The stage that measures a trial; in a repeat that of the last round.",
           REQUIRED, identity="metadata"),
    string("metric", "What it measures: `reward`, `success`, `best_of(k)`, `pass_at(k)`, `loops`.",
           "reward", pattern=METRIC_PATTERN, identity="metadata"),
    choice("direction", "Whether more of it is better.", ("maximize", "minimize"), "maximize",
           identity="metadata"),
    integer("trials", "How many there are in the end, those of before included.", 20, minimum=1,
            identity="metadata"),
    choice("sampler", "`tpe` learns from the trials before, `random` does not.",
           ("tpe", "random"), "tpe", identity="metadata"),
    choice("pruner", "Between rounds: `median` ends a trial that is worse than the median of the "
           "others after as many rounds, `halving` lets about half of them continue.",
           ("none", "median", "halving"), "none", identity="metadata"),
    integer("startup_trials", "Trials that are drawn at random, and before which `median` ends "
            "none.", 5, minimum=0, identity="metadata"),
    integer("seed", "Seed of what is drawn.", 0, minimum=0, identity="metadata"),
)  # fmt: skip

SERVER_PLACEMENT_FIELDS: tuple[Field, ...] = (
    integer("cpus", "CPU cores, on each node.", nullable=True, minimum=1, identity="placement"),
    integer("gpus", "GPUs, of all nodes together; 0 is none, whatever a profile takes for usual.",
            nullable=True, minimum=0, identity="placement"),
    string("gpu_type", "Type of the GPUs, as the cluster calls it: `a100`.", nullable=True,
           pattern="^[A-Za-z0-9_.]+$", identity="placement"),
    string("gpu", "What each GPU holds, so that `agentc check` knows what fits: a card such as "
           "`a100-80gb`, or a number of GB. It requests nothing from the cluster: `gpu_type` does.",
           nullable=True, pattern="^[A-Za-z0-9_. -]+$", identity="placement"),
    integer("mem_mb", "Memory in MiB, on each node; by default, what the job's model "
            "needs, or the profile's default where that is more.", nullable=True, minimum=1,
            identity="placement"),
    integer("minutes", "Time limit.", nullable=True, minimum=1, identity="placement"),
    integer("nodes", "Nodes that the training processes are spread over, equally.", nullable=True,
            minimum=1, identity="placement"),
    string("constraint", "Features that the nodes must have, as `sbatch --constraint` takes them.",
           nullable=True, identity="placement"),
    string("partition", "Partition of the cluster.", nullable=True, identity="placement"),
    string("account", "Account that pays, for every job of the stage.", nullable=True,
           identity="placement"),
    string("qos", "Quality of service, for every job of the stage.", nullable=True,
           identity="placement"),
)  # fmt: skip
PLACEMENT_FIELDS: tuple[Field, ...] = (
    *SERVER_PLACEMENT_FIELDS,
    integer("retries", "How often `agentc run` submits a job of the stage again that the cluster "
            "cut off, as long as it gets further; 9 by default, 0 is never.",
            nullable=True, minimum=0, identity="placement"),
    boolean("local", "Whether jobs run on the submit host under a cluster's profile, as "
            "Snakemake's local rules do, and not in the queue. By default, those do "
            "that take seconds and no GPU (reports, comparisons, pairs, measures) and those "
            "that download from the model hub.", None,
            identity="placement"),
)  # fmt: skip

SCOPES = ("job", "node", "shared")
SHARING_FIELDS: tuple[Field, ...] = (
    choice("scope", "Who shares one start of the server: jobs of one session (`job`), those of one "
           "node (`node`), or all that need it, for which it is a job of its own that other nodes "
           "reach too (`shared`).", SCOPES, "job", identity="placement"),
    integer("replicas", "Copies of a server; an episode stays with one of them. null: one of a "
            "`shared` server, of a model's server within a job as many as the job's GPUs allow.",
            nullable=True, minimum=1, maximum=64, identity="placement"),
    group("placement", "Resources of a `shared` server, as those of a stage.",
          SERVER_PLACEMENT_FIELDS,
          identity="placement"),
)  # fmt: skip
"""What every entry of `environments` and `servers` takes, beside the settings of its backend."""

STAGE_KEYS: dict[str, str] = {
    "kind": "What the stage does.",
    "backend": "What does it: an id such as `trl.sft`, its family (`trl`), or `auto`.",
    "doc": "A note for readers.",
    "options": "Settings of the backend's own.",
    "placement": "Resources; never part of a result's identity.",
}
AUTO = "The backend that can do what the stage says; `agentc explain STAGE SPEC` says which."
MODEL_KEYS: dict[str, str] = {key: doc for key, doc in STAGE_KEYS.items() if key != "kind"}
DOC = string("doc", "A note for readers.", nullable=True, identity="metadata")
RESOURCE_KEYS: dict[str, str] = {
    "backend": "Which environment or server, by id or short name.",
    DOC.name: DOC.doc,
}

USES: dict[str, str] = {
    "environment": "Entry of `environments:`; may be left out when there is exactly one.",
    "server": "Entry of `servers:`; may be left out when there is exactly one.",
    "prompt": "Entry of `prompts:`; may be left out when there is exactly one.",
}
PER_ROUND = "per_round"


# The keys of a repeat: its rounds, the rule by which they stop, what a round carries to the next.

REPEAT_KEYS: dict[str, str] = {"repeat": "Rounds of stages.", "doc": "A note for readers."}
ROUNDS = integer(
    "n", "Number of rounds, with `until` at most.", REQUIRED, minimum=1, maximum=10_000
)
UNTIL_FIELDS: tuple[Field, ...] = (
    string("stage", "The stage of this repeat that measures each round.", REQUIRED,
           identity="metadata"),
    string("metric", "What it measures: `reward`, `success`, `best_of(k)`, `pass_at(k)`, `loops`.",
           "reward", pattern=METRIC_PATTERN, identity="metadata"),
    choice("direction", "Whether more of it is better.", ("maximize", "minimize"), "maximize",
           identity="metadata"),
    number("reaches", "The rounds stop after the first that measures at least this; with "
           "`direction: minimize`, at most this.", nullable=True, identity="metadata"),
    integer("no_gain_for", "They stop after N rounds in a row without a gain over the best "
            "round before.", nullable=True, minimum=1, identity="metadata"),
    number("min_gain", "A gain is more than this (`no_gain_for`).", 0.0, minimum=0,
           identity="metadata"),
)  # fmt: skip
UNTIL = group("until", "A rule by which the rounds stop before `n`, on what a stage of each round "
              "measures. No key depends on it.", UNTIL_FIELDS, identity="metadata")  # fmt: skip
REPEAT_INNER_KEYS: dict[str, str] = {
    "n": ROUNDS.doc,
    "until": UNTIL.doc,
    "carry": "Names that represent a stage of the round before.",
    "stages": "The stages of one round.",
}
CARRY_KEYS: dict[str, str] = {
    "from": "The stage outside the repeat that round 1 takes; or a list, `[]` for none.",
    "next": (
        "The stage of this round that the next round takes, or a carried name; or a list: "
        "`[past, pairs]` as the `next` of `past` gathers `pairs` of all rounds."
    ),
}

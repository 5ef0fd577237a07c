"""ArCHer's released configurations (YifeiZhou02/ArCHer) as specs: what each key is called here, and
the tasks, with environments, prompts and the games that a start imitates.

A key becomes a setting with the key's name behind it, or is named at the head of the spec with
the reason why it is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from agentc.diagnostics.suggest import did_you_mean, listed
from agentc.importing.compose import ConfigurationError, ReleasedValue
from agentc.source.scalars import Plain

Values: TypeAlias = Mapping[str, Plain]

_TRANSCRIPT = """\
prompts:
  shown: {instruction: "", reply_format: text, observation_prefix: "", memory: last}"""
_SHOP = r"""prompts:
  shown: {instruction: "", reply_format: text, observation_prefix: "Observation:\n"}"""
_TEN = """\
prompts:
  shown:
    instruction: |-
      Let us play Twenty Questions. The object is one of these: football, dog, banana, truck, pants,
      computer, piano, chair, pen, scissors. Read the questions so far with their answers, and write
      the next question, on one line and with nothing else.
    role: system
    reply_format: text
    observation_prefix: ""
    memory: last"""
"""In our words; the released one has examples, and replies in JSON of which a question is cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedTask:
    """A task. `settings` are those of its environment, into which keys are put, `imitated` what
    the environment of the start's games has besides; `attempts` games of each task are imitated,
    and `eval_size` counts `games`: tasks (`limit`) or, where there is one alone, attempts. `needs`
    are keys with whole numbers that are read of this task alone."""

    settings: str
    remark: str
    imitated: str
    attempts: int
    turns: int
    games: str = "limit"
    shown: str = _TRANSCRIPT
    needs: tuple[str, ...] = ()

    def environment(self, values: Values) -> str:
        """The section `environments`; the start's games are played in the one that is second."""
        settings = self.settings.format_map(values)
        lines = ["environments:", f"  game: {{{settings}}}  # env_name, {self.remark}"]
        if values.get("checkpoint_path") is not None:
            lines.append(f"  imitated: {{{settings}{self.imitated}}}")
        return "\n".join(lines)

    def prompt(self, agent_type: str) -> str:
        """The section `prompts`: of `archer_llm` one with an instruction, else the bare texts."""
        return _TEN if agent_type == "archer_llm" else self.shown


_GAME = (
    "backend: {name}, splits: together, reward: per_question, observation: transcript, "
    'questions: 20, unknown: "no", judge: upstream_v1'
)
_ORACLE = "env_load_path (an oracle on a drive: a table of facts represents it)"

TASKS: Mapping[str, ReleasedTask] = {
    "twenty_questions": ReleasedTask(
        settings=_GAME.format(name="twenty_questions") + ", objects: all",
        remark=_ORACLE,
        imitated=", expert_skill: 0.2",
        attempts=20,
        turns=20,
    ),
    "guess_my_city": ReleasedTask(
        settings=_GAME.format(name="guess_my_city"),
        remark=_ORACLE,
        imitated=", expert_skill: 0",
        attempts=35,
        turns=20,
    ),
    "adventure": ReleasedTask(
        settings="backend: detective, actions: free, max_steps: 50",
        remark="env_load_path (`agentc data fetch detective` brings the file; `game` names it)",
        imitated=", expert_skill: 0",
        attempts=1000,
        turns=50,
        games="attempts",
    ),
    "webshop": ReleasedTask(
        settings=(
            "backend: webshop, page_size: 3, expert_thoughts: none, "
            "splits: {{all: {{range: [{webshop_lower}, {webshop_upper}]}}}}"
        ),
        remark="env_load_path (a shop's address: an invented catalogue represents it), "
        "webshop_lower, webshop_upper",
        imitated="",
        attempts=4,
        turns=10,
        shown=_SHOP,
        needs=("webshop_lower", "webshop_upper"),
    ),
}
"""By `env_name`."""


Released: TypeAlias = Mapping[str, ReleasedValue]
_T = TypeVar("_T")

_WHOLE = (
    "rollout_size", "eval_size", "batch_size", "grad_accum_steps", "iterations", "epochs",
    "actor_epochs", "warmup_iter", "capacity", "save_freq", "eval_freq", "max_new_tokens",
)  # fmt: skip
_NUMBERS = ("critic_lr", "lm_lr", "gamma", "tau", "max_grad_norm", "temperature")
_TEXTS = ("agent_type", "policy_lm", "critic_lm", "env_name", "env_load_path")
_MODELS = ("policy_lm", "critic_lm")
_REPO = re.compile(r"[\w.-]+(/[\w.-]+)?", re.ASCII)
_NEEDED = (*_TEXTS, *_WHOLE, *_NUMBERS)
"""Keys that every run reads."""

_NOWHERE = {
    "save_path": "results lie in the store, by what made them",
    "cache_dir": "the hub's own variables (HF_HOME) say where models are kept",
    "use_wandb": "a run keeps its curves itself, and the report draws them",
    "wandb_key": "nothing is sent to W&B",
    "project_name": "nothing is sent to W&B",
    "run_name": "nothing is sent to W&B",
    "huggingface_token": "a gated model takes `token: {secret: HF_TOKEN}`",
    "use_baseline": "nothing reads it in the released code either",
    "do_sample": "replies are always drawn where a policy learns",
    "env_idx": "tasks are drawn; `limit` would take the first ones",
    "eos_str": "a reply ends where the model's `chat_format` ends it",
    "use_lora": "all weights are trained; the released code heeds it only with `archer_llm`, for "
    "matrices of rank 16 beside those of its attention",
}
"""Keys that become no setting, whatever the method."""
_OPTIONAL = ("checkpoint_path", "webshop_lower", "webshop_upper")
KEYS = frozenset((*_NEEDED, *_NOWHERE, *_OPTIONAL))
"""All keys that released configurations have."""

_METHODS = {
    "archer": "archer",
    "archer_llm": "archer",
    "chai": "chai",
    "online_filteredbc": "filtered_bc",
}
_UNREAD: Mapping[str, Mapping[str, str]] = {
    "archer": {},
    "chai": {
        "lm_lr": "CHAI trains no policy",
        "actor_epochs": "CHAI trains no policy",
        "warmup_iter": "the released code makes all iterations warm-up with CHAI",
    },
    "filtered_bc": {
        **dict.fromkeys(
            ("critic_lm", "critic_lr", "epochs", "gamma", "tau"),
            "filtered BC has no critic (the released code loads one and trains none)",
        ),
        "capacity": "the released code imitates the best of all games since the start",
    },
}
"""Keys that a method does not read."""

_SHIPPED = {
    "gpt2": "gpt2",
    "mistralai/Mistral-7B-Instruct-v0.2": "mistral_7b_instruct",
    "roberta-base": "roberta_base",
}
_LINES: tuple[tuple[tuple[str, ...], str], ...] = (
    (("archer", "chai"), "encoder: encoder  # critic_lm"),
    ((), "iterations: {iterations}  # iterations"),
    ((), "episodes: {rollout_size}  # rollout_size"),
    (("archer", "filtered_bc"), "warmup: {warmup_iter}  # warmup_iter"),
    (("archer", "chai"), "discount: {gamma}  # gamma"),
    (("archer", "chai"), "buffer: {{capacity: {capacity}}}  # capacity"),
    (("filtered_bc",), "buffer: {{capacity: 10000000}}"),
    (("archer", "chai"), "critic:"),
    (("archer", "chai"), "  lr: {critic_lr}  # critic_lr"),
    (("archer", "chai"), "  updates: {epochs}  # epochs, which are gradient steps"),
    (("archer", "chai"), "  batch: {batch}  # batch_size * grad_accum_steps"),
    (("archer", "chai"), "  target_rate: {tau}  # tau"),
    (
        ("archer", "chai"),
        "  max_grad_norm: {max_grad_norm}  # max_grad_norm, there of all",
    ),
    (("archer", "filtered_bc"), "actor:"),
    (("archer", "filtered_bc"), "  lr: {lm_lr}  # lm_lr"),
    (("archer", "filtered_bc"), "  updates: {actor_epochs}  # actor_epochs, gradient steps too"),
    (("archer", "filtered_bc"), "  batch: {batch}  # batch_size * grad_accum_steps"),
    (("archer", "filtered_bc"), "  max_grad_norm: {max_grad_norm}  # max_grad_norm"),
    (("chai",), "options: {{candidates: 5, rank_with: target}}"),
    (("filtered_bc",), "options: {{keep_share: 0.1}}"),
    ((), "save_every: {save_freq}  # save_freq"),
    ((), "evaluate:"),
    ((), "  split: all"),
    ((), "  every: {eval_freq}  # eval_freq"),
    ((), "  {games}: {eval_size}  # eval_size"),
    (("archer", "filtered_bc"), "  temperature: 0"),
    (("chai",), "  temperature: {temperature}  # greedily, as there, all candidates would be one"),
)
"""Of the stage that trains, each with the methods that it is of (none: all)."""


@dataclass(frozen=True, slots=True)
class ImportedSpec:
    """A spec's text, and the remarks at its head: where the released code ends under this
    configuration, and which keys become no setting."""

    text: str
    crashes: tuple[str, ...]
    without: Mapping[str, str]


def import_archer(name: str, released: Released) -> ImportedSpec:
    """The spec of a composed configuration of that name. Raises ConfigurationError for keys that
    are unknown, missing or of another type, and for files that configure no run."""
    _check(name, released)
    method, task = _choice(released, "agent_type", _METHODS), _choice(released, "env_name", TASKS)
    _demand(name, released, task.needs, f", which `{released['env_name'].value}` reads")
    _demand_numbers(released, task.needs, ())
    values = {key: each.value for key, each in released.items()}
    values["batch"] = int(str(values["batch_size"])) * int(str(values["grad_accum_steps"]))
    values["games"] = task.games
    # Not every one of these keys is needed, and each is in the head where it is given.
    unread = {**_NOWHERE, **_UNREAD[method]}
    without = {key: why for key, why in unread.items() if key in released}
    crashes = tuple(_crashes(released))
    head = [f"# ArCHer's {name} as a spec, by `agentc init --from-archer`. As released"]
    head += [f"# - {each}" for each in crashes]
    head += ["#", "# Keys that become no setting:"]
    head += [f"# - {key}: {why}" for key, why in without.items()]
    title = re.sub(r"[^a-z0-9_-]+", "-", name.lower().removesuffix(".yaml")).strip("-_")
    title = title or "imported"
    reranked = ", rerank: {candidates: 5}" if method == "chai" else ""
    parts = [
        "\n".join(head),
        f"agentc: 1\nname: {title}\n\npaper: {{use: archer/paper}}",
        task.environment(values),
        f"servers:\n  local: {{backend: transformers{reranked}}}",
        task.prompt(str(values["agent_type"])),
        "defaults:\n  environment: game\n  prompt: shown\n  split: all\n"
        f"  max_turns: {task.turns}\n  on_overflow: end\n  decode: "
        "{{temperature: {temperature}, max_tokens: {max_new_tokens}}}  # temperature, "
        "max_new_tokens".format_map(values),
        f"models:\n  model: {_model(str(values['policy_lm']))}  # policy_lm",
        "stages:\n" + "\n\n".join(_stages(values, method, task)),
    ]
    return ImportedSpec("\n\n".join(parts) + "\n", crashes, without)


def _check(name: str, released: Released) -> None:
    for key, each in released.items():
        if key not in KEYS:
            hint = did_you_mean(key, KEYS) or f"there are {listed(sorted(KEYS), 40)}"
            raise ConfigurationError(f"{each.place}: ArCHer has no `{key}`; {hint}")
        if key not in _NOWHERE and "${" in str(each.value):
            raise ConfigurationError(
                f"{each.place}: `{key}` takes its value from elsewhere; compose it with Hydra "
                "(`--cfg job --resolve`) first"
            )
    what = "; it names no task, so it is a base of other files: import one of those"
    if "env_name" in released:
        what = "; it is not whole: `defaults: [default, _self_]` takes in the rest"
    _demand(name, released, _NEEDED, what)
    _demand_numbers(released, _WHOLE, _NUMBERS)
    for key in _MODELS:
        if not _REPO.fullmatch(str(released[key].value or "")):
            raise ConfigurationError(
                f"{released[key].place}: `{key}` has to be a model of the hub, such as `gpt2` or "
                "`owner/name`"
            )


def _demand(name: str, released: Released, keys: Sequence[str], what: str) -> None:
    missing = [key for key in keys if key not in released]
    if missing:
        raise ConfigurationError(f"{name} lacks {listed(missing)}{what}")


def _demand_numbers(released: Released, whole: Sequence[str], others: Sequence[str]) -> None:
    for key in (*whole, *others):
        value, types = released[key].value, (int,) if key in whole else (int, float)
        if isinstance(value, bool) or not isinstance(value, types):
            wanted = "a whole number" if key in whole else "a number"
            raise ConfigurationError(f"{released[key].place}: `{key}` has to be {wanted}")


def _choice(released: Released, key: str, among: Mapping[str, _T]) -> _T:
    value = str(released[key].value)
    if value not in among:
        hint = did_you_mean(value, among) or f"there are {listed(sorted(among))}"
        raise ConfigurationError(f"{released[key].place}: there is no {key} `{value}`; {hint}")
    return among[value]


def _crashes(released: Released) -> Iterator[str]:
    """Where the released code ends by an error under these settings."""
    if released["agent_type"].value == "chai" and "eos_str" not in released:
        yield "it does not start: CHAI reads `eos_str`, which neither file sets"
    if "checkpoint_path" in released and released["checkpoint_path"].value == "":
        yield "it does not start: `checkpoint_path` is empty, which is not null, and is loaded"
    yield (
        "it ends in its first iteration with torch 2.6 or newer, which reads no pickled buffer "
        "unless allowed to"
    )
    if released["agent_type"].value == "online_filteredbc":
        every = released["save_freq"].value
        yield f"it ends at its first save, in iteration {every}, by an optimiser that it lacks"


def _model(repo: str) -> str:
    """Those that ship as templates have their commits; others are pinned by `agentc lock`."""
    if repo in _SHIPPED:
        return f"{{use: models/{_SHIPPED[repo]}}}"
    return f"{{backend: hf, repo: {repo}, revision: main, chat_format: tokenizer}}"


def _encoder(repo: str) -> str:
    if repo in _SHIPPED:
        return f"{{use: models/{_SHIPPED[repo]}}}"
    return f"{{kind: text_encoder, backend: hf, repo: {repo}, revision: main}}"


def _stages(values: Values, method: str, task: ReleasedTask) -> Iterator[str]:
    policy = "model  # checkpoint_path, which is null"
    if values.get("checkpoint_path") is not None:
        # Checkpoints are on a drive alone: what imitates games stands for them.
        policy = "start"
        games = f"environment: imitated, attempts: {task.attempts}, seed: 1"
        yield f"  games: {{kind: expert, {games}}}"
        yield "  start: {use: archer/start, with: {model: model, data: games}}  # checkpoint_path"
    if method != "filtered_bc":
        yield f"  encoder: {_encoder(str(values['critic_lm']))}"
    lines = [text for of, text in _LINES if not of or method in of]
    yield "\n    ".join(
        [
            "  run:",
            "kind: online_rl",
            f"algorithm: {method}  # agent_type",
            f"model: {policy}",
            *(line.format_map(values) for line in lines),
        ]
    )
    yield "  evaluate_run: {use: evaluate, with: {model: run, split: all}, server: local}"

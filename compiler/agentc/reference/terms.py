"""Terms of the specification language and of the output that `agentc explain` defines: those that
are no kind, setting, backend, metric or artifact. An example is a part of a spec.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Term:
    """`see` are other names that `agentc explain` takes."""

    meaning: str
    example: str = ""
    see: tuple[str, ...] = ()


_RUN = "repeat:\n  n: 2\n  carry: {policy: {from: sft, next: dpo}}\n  stages: {...}"

TERMS: dict[str, Term] = {
    "spec": Term("The YAML file that describes an experiment; `agentc check SPEC` checks it."),
    "stage": Term(
        "One step of the experiment: a kind (`sft`, `rollout`, `evaluate`), its inputs by the "
        "names of other stages, and its settings. It runs when its inputs are finished.",
        "stages:\n  sft: {kind: sft, model: base, data: expert, lr: 2e-5}",
        ("kind",),
    ),
    "kind": Term(
        "What a stage does, with its inputs, settings and product. `agentc explain --list "
        "kinds` lists them."
    ),
    "backend": Term(
        "The implementation of a kind, an environment or a model server. A stage without "
        "`backend:` gets the default of its kind, or the one that supports all of its settings. "
        "`agentc explain --list backends` lists them.",
        "sft: {kind: sft, backend: openrlhf, model: base, data: expert}",
    ),
    "param": Term(
        "A named value of the spec that `-p NAME=VALUE` replaces and `{{ NAME }}` uses.",
        'params:\n  rate: {type: float, default: 1e-5}\nstages:\n  sft: {lr: "{{ rate }}"}',
        ("matrix", "scale"),
    ),
    "cell": Term(
        "One configuration of a sweep: one combination of the values under `matrix:`. Stages that "
        "do not depend on the swept params are shared by all cells.",
        'matrix: {seed: [0, 1]}   # two cells; stages use "{{ seed }}"',
        ("matrix",),
    ),
    "round": Term(
        "One pass through the stages of a `repeat`. `{{ round }}` is its number, from 1.",
        _RUN,
        ("repeat", "carry", "per_round"),
    ),
    "repeat": Term(
        "A group of stages that runs `n` times, each round based on the one before (`carry`).",
        _RUN,
        ("round", "carry", "until"),
    ),
    "carry": Term(
        "A name in a `repeat` that means `from` in round 1 and the `next` of the previous "
        "round afterwards, such as the policy that each round improves.",
        _RUN,
        ("repeat",),
    ),
    "per_round": Term(
        "A list with one value of a setting for each round of a `repeat`.",
        "dpo: {kind: dpo, model: policy, data: pairs, beta: {per_round: [0.1, 0.5]}}",
        ("repeat",),
    ),
    "scale": Term(
        "A named variant of the spec with the same stages and smaller numbers, chosen by "
        "`--scale NAME`. A spec without `--scale` runs as it is written (`full`).",
        "scales:\n  smoke: {stages: {expert: {limit: 8}}}",
        ("smoke",),
    ),
    "smoke": Term(
        "The usual name of the smallest scale: every job of the real graph on a tiny model. Its "
        "numbers mean nothing.",
        see=("scale",),
    ),
    "template": Term(
        "A typed part of a spec that `use:` inserts. `agentc init --templates` lists them.",
        "evaluate: {use: evaluate, with: {...}}",
    ),
    "claim": Term(
        "A statement of a paper, or your own hypothesis, about the evaluations of a spec. The "
        "report and `agentc run` print the verdict.",
        "claims:\n  gain: {stage: eval_dpo, difference_from: eval_sft, above: 0}",
        ("claims",),
    ),
    "supported": Term(
        "The verdict on a claim of a side (`above`, `below`) where the 95% confidence interval is "
        "on that side of the value.",
        see=("contradicted", "inconclusive", "claim"),
    ),
    "contradicted": Term(
        "The verdict on a claim of a side where the 95% confidence interval is on the other side.",
        see=("supported", "inconclusive", "claim"),
    ),
    "reproduced": Term(
        "The verdict on a claim of a paper's `value` where the 90% confidence interval is within "
        "the tolerance of that value. Where the data exclude the value and its tolerance, the "
        "verdict is `not reproduced`.",
        see=("inconclusive", "claim"),
    ),
    "inconclusive": Term(
        "The verdict on a claim that the data neither confirm nor reject: the difference is within "
        "noise. More tasks or seeds make the confidence interval shorter.",
        see=("supported", "reproduced", "claim"),
    ),
    "key": Term(
        "The 128-bit hash of everything that determines a result: settings, inputs, versions and "
        "software. Equal keys are one result, which no run computes twice.",
        see=("store", "identity"),
    ),
    "identity": Term(
        "The settings and facts that enter a key. Placement, notes and logging do not.",
        see=("key", "placement"),
    ),
    "store": Term(
        "The folder with all results, by key: `--store DIR` or AGENTC_STORE. Several users and "
        "runs may share it.",
        see=("key", "artifact"),
    ),
    "artifact": Term(
        "The result of a stage in the store: rows, a checkpoint, metrics. `agentc explain "
        "--list artifacts` lists the types."
    ),
    "job": Term(
        "One run of one program, with its inputs, settings and key. A stage has one job or two.",
        see=("stage",),
    ),
    "lease": Term(
        "The right of a job to a running model server or environment for as long as it runs.",
        see=("session", "scope"),
    ),
    "session": Term(
        "Jobs that use one start of a server, one after the other, in the same process group.",
        see=("lease",),
    ),
    "draft": Term(
        "A job as a backend describes it, before inputs and software have given it a key."
    ),
    "honoured": Term(
        "A backend honours the settings that it reads. Setting one that it does not read is an "
        "error, which names the backends that do."
    ),
    "environment": Term(
        "The world in which an agent acts: it gives observations, takes actions and gives a "
        "reward. `agentc explain --list environments` lists them. The Python packages of jobs "
        "are software.",
        "environments:\n  craft: {backend: textcraft}",
    ),
    "software": Term(
        "The Python packages that a job runs with, installed once from a lock with exact versions "
        "and hashes, apart from agentc's own.",
    ),
    "server": Term(
        "A process that serves a model while stages act: vLLM, transformers, or an "
        "endpoint that you run. `agentc explain --list servers` lists them.",
        "servers:\n  local: {backend: vllm}",
    ),
    "simulator": Term(
        "A model that an environment queries by itself, such as a simulated human; an entry of "
        "`environments:` names its server."
    ),
    "episode": Term(
        "One attempt at one task: observations, actions, a reward and the reason why it ended.",
        see=("trajectory", "overflow"),
    ),
    "trajectory": Term("The messages of an episode, with its reward.", see=("episode",)),
    "turn": Term("One reply of the agent, with the context that it was given."),
    "task": Term("What an episode is about, by its id; a `split` is a named list of tasks."),
    "overflow": Term(
        "An episode that ended because the conversation no longer fitted the context of the model "
        "(context overflow). `max_turns`, `max_tokens` and `context` decide when."
    ),
    "privileged": Term(
        "What the environment knows of a task and the agent does not see, such as the hidden code "
        "of a collaboration task. A critic may be trained with it.",
    ),
    "expert": Term(
        "A program that solves the tasks of an environment by its rules: data for SFT, and an "
        "upper bound for evaluations.",
        "expert: {kind: expert, split: train}",
    ),
    "candidate": Term("One of several replies sampled at the same turn.", see=("sample", "rank")),
    "react": Term(
        "A reply format: a thought, then `Action:` and the action on a line of its own. "
        "`react_inline` has both on one line, `action_only` nothing but the action, `text` takes "
        "the whole reply as the action, `tools` is a function call.",
        "prompts:\n  main: {instruction: Craft the goal., reply_format: react}",
    ),
    "induction": Term(
        "An initialisation of tiny models from scratch whose attention copies from the context at "
        "the start. It makes smoke tests learn something; models of the hub have no use for it.",
    ),
    "placement": Term(
        "Resources of the jobs of a stage: CPUs, GPUs, memory, nodes, minutes. It enters no key.",
        "sft: {placement: {gpus: 4, minutes: 240}}",
        ("profile",),
    ),
    "profile": Term(
        "A Snakemake profile: how a machine or cluster runs jobs. `agentc run --profile slurm`.",
        see=("placement",),
    ),
    "lock": Term(
        "The file beside a spec that pins what it depends on: commits of the hub, files, software. "
        "The first `agentc run` pins the commits; `agentc lock` writes all of it; `--locked` "
        "rejects a difference.",
    ),
    "discrepancy": Term(
        "A place where a paper and its code disagree, with the side that the spec takes. "
        "`agentc explain SPEC` lists those of a spec.",
    ),
    "variant": Term("One spec at one scale with one choice of params; each has runs of its own."),
    "tracker": Term("Where curves are sent: `track: wandb`, trackio, mlflow, tensorboard."),
    "calibration": Term("Measurements of this machine's speed, for estimates of time."),
}

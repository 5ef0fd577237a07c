"""An example of each kind of stage, as `agentc explain` prints it, and a spec that has what the
examples name. A test compiles them together.
"""

from __future__ import annotations

from collections.abc import Mapping

import yaml

SCAFFOLD = """\
agentc: 1
name: examples
environments: {world: {backend: textcraft}, hidden: {backend: twenty_questions}}
servers: {local: {backend: transformers}}
prompts: {react: {instruction: Craft the goal., reply_format: react}}
models: {base: {backend: scratch, chat_format: chatml, corpus: expert}}
stages:
  evaluate_base: {kind: evaluate, policy: base, environment: world, split: test}
"""
"""The entries that examples name. Stages name each other: `expert` is the example of that kind."""

EXAMPLES: Mapping[str, str] = {
    "model": "{repo: Qwen/Qwen2.5-0.5B-Instruct, revision: main}",
    "encoder": "{kind: encoder, backend: scratch}",
    "text_encoder": "{kind: text_encoder, backend: scratch, corpus: expert}",
    "expert": "{kind: expert, environment: world, split: train}",
    "privileged": "{kind: privileged, environment: hidden, split: train}",
    "dataset": "{kind: dataset, path: conversations.jsonl, format: messages}",
    "mix": "{kind: mix, agent: expert, general: dataset, general_share: 0.8, share_of: total}",
    "sft": "{kind: sft, model: base, data: expert, lr: 2e-5, global_batch: 16, max_length: 2048}",
    "dpo": "{kind: dpo, model: sft, data: pair, beta: 0.1, lr: 1e-6, global_batch: 16, "
    "max_length: 2048}",
    "critic": "{kind: critic, model: base, data: pair, beta: 0.1, lr: 1e-6, global_batch: 8, "
    "max_length: 2048}",
    "rollout": "{kind: rollout, policy: sft, environment: world, split: train, "
    "decode: {temperature: 1}}",
    "pair": "{kind: pair, expert: expert, rollouts: rollout}",
    "search": "{kind: search, policy: sft, environment: world, split: train, depth: 10}",
    "revise": "{kind: revise, trees: search, policy: sft, environment: world, alpha: 0.5}",
    "sample": "{kind: sample, policy: sft, rollouts: rollout, candidates: 8}",
    "rank": "{kind: rank, candidates: sample, critic: critic, reference: base}",
    "evaluate": "{kind: evaluate, policy: sft, environment: world, split: test}",
    "benchmark": "{kind: benchmark, policy: sft, tasks: [gsm8k]}",
    "measure": "{kind: measure, of: rollout, environment: world}",
    "compare": "{kind: compare, of: [evaluate_base, evaluate]}",
    "online_rl": "{kind: online_rl, policy: sft, environment: world, split: train, "
    "iterations: 50, episodes: 32}",
    "offline_rl": "{kind: offline_rl, policy: sft, data: rollout, iterations: 10}",
    "checkpoint": "{kind: checkpoint, run: online_rl}",
    "script": "{kind: script, run: filter.py, inputs: {rows: rollout}, output: trajectories}",
}
"""By kind, the settings of a stage that has the kind's name. Judge and report need no stage."""


def example_of(kind: str) -> str | None:
    """The example as it stands in a spec, in block style; None where a kind needs no stage."""
    text = EXAMPLES.get(kind)
    if text is None:
        return None
    section, name = ("models", "base") if kind == "model" else ("stages", kind)
    return f"{section}:\n  {name}:\n" + "".join(
        f"    {key}: {_flow(value)}\n" for key, value in yaml.safe_load(text).items()
    )


def _flow(value: object) -> str:
    written = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=1000)
    return written.removesuffix("\n").removesuffix("\n...").removesuffix("\n")

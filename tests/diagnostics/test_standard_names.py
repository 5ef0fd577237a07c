"""Names of TRL, OpenRLHF, axolotl, LLaMA-Factory, verl and vLLM: accepted with a note where meaning
and unit are ours, else an error that says what to write. Never silent, never a bare list.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from agentc.backend_api import BackendTable, load_backends
from agentc.compilation import Compilation, compile_spec
from agentc.schema.standard_names import TABLES, standard_names

SPEC = """\
agentc: 1
name: names
environments: {craft: {backend: textcraft}}
servers:
  local: {backend: vllm, SERVING}
  remote: {backend: openai, model: big, ENDPOINT}
prompts: {react: {instruction: Craft the goal.}}
models: {base: {backend: scratch, corpus: games, chat_format: chatml, NEW_MODEL}}
defaults: {server: local, max_length: 512, global_batch: 8}
stages:
  games: {kind: expert, split: train, limit: 8}
  sft: {kind: sft, model: base, data: games, TRAINING, lora: {LORA}}
  played: {kind: rollout, model: sft, split: train, decode: {SAMPLING}}
  pairs: {kind: pair, expert: games, rollouts: played}
  dpo: {kind: dpo, model: sft, data: pairs, lr: 1e-6, PREFERENCE}
  ppo: {kind: online_rl, algorithm: ppo, model: sft, split: train, iterations: 2, episodes: 4,
    options: {PPO}}
  grpo: {kind: online_rl, algorithm: grpo, model: sft, split: train, iterations: 2, episodes: 16,
    options: {GRPO}}
  test: {kind: evaluate, model: dpo, split: test, server: remote}
"""
OURS = {
    "SERVING": {"tensor_parallel": "1", "pipeline_parallel": "1"},
    "ENDPOINT": {"url": "http://127.0.0.1:8000/v1"},
    "NEW_MODEL": {"layers": "2", "heads": "2", "kv_heads": "2", "context": "1024",
                  "tie_embeddings": "false", "hidden_size": "64"},
    "TRAINING": {"lr": "1e-5", "epochs": "2", "micro_batch": "2", "scheduler": "cosine",
                 "warmup_ratio": "0.1", "max_grad_norm": "0.5", "save_every": "50",
                 "log_every": "5", "processes": "2"},
    "PREFERENCE": {"beta": "0.2"},
    "LORA": {"rank": "4", "alpha": "8", "dropout": "0.1", "targets": "[q_proj]"},
    "SAMPLING": {"max_tokens": "64", "stop": "[END]"},
    "PPO": {"clip": "0.1", "value_clip": "0.3", "gae_lambda": "0.9", "epochs": "2",
            "entropy_coef": "0.01"},
    "GRPO": {"group": "4", "clip_low": "0.1", "clip_high": "0.3"},
}  # fmt: skip
"""Each key that has another name somewhere, with a value that is not its default."""


@pytest.fixture(scope="module")
def table() -> BackendTable:
    return load_backends()


def compiled(
    folder: Path, table: BackendTable, names: dict[str, str], more: dict[str, str] | None = None
) -> Compilation:
    """The spec with other names for some of our keys, and `more` behind the settings of a place."""
    text = SPEC
    for place, values in OURS.items():
        written = (f"{names.get(f'{place}.{key}', key)}: {value}" for key, value in values.items())
        text = text.replace(place, ", ".join([*written, *filter(None, [(more or {}).get(place)])]))
    spec = folder / "spec.yaml"
    spec.write_text(text)
    return compile_spec(spec, {}, table)


def keys_of(one: Compilation) -> dict[str, str]:
    assert one.plan is not None, [found.message for found in one.diagnostics]
    return {job.id: job.key for job in one.plan.jobs}


def rows() -> Iterable[tuple[str, str, str]]:
    """Place, our key, another tool's name: every row of the table."""
    for place, values in OURS.items():
        for names in TABLES:
            for ours, others in names.names.items():
                if ours in values and _is_of(place, names.of):
                    yield from ((place, ours, other) for other in others)


def _is_of(place: str, marks: frozenset[str]) -> bool:
    if place in ("TRAINING", "PREFERENCE"):
        return "global_batch" in marks
    known = {"SERVING": "tensor_parallel", "ENDPOINT": "url", "NEW_MODEL": "kv_heads",
             "LORA": "rank", "SAMPLING": "temperature", "PPO": "gae_lambda", "GRPO": "group",
    }  # fmt: skip
    return known[place] in marks


def test_the_spec_has_every_key_that_has_another_name() -> None:
    held = {(place, ours) for place, ours, _ in rows()}
    assert len(held) == sum(len(names.names) for names in TABLES)


def test_every_standard_name_is_the_same_plan_with_a_note(
    tmp_path: Path, table: BackendTable
) -> None:
    """Compiled with the first other name of all keys, then with the second ones, and so on."""
    wanted = keys_of(compiled(tmp_path, table, {}))
    left = list(rows())
    while left:
        names: dict[str, str] = {}
        for place, ours, other in left:
            names.setdefault(f"{place}.{ours}", other)
        left = [row for row in left if names[f"{row[0]}.{row[1]}"] != row[2]]
        found = compiled(tmp_path, table, names)
        assert keys_of(found) == wanted, names
        noted = [each.message for each in found.diagnostics if each.code == "AGC215"]
        expected = [
            f"`{other}` is called `{path.split('.')[1]}` here" for path, other in names.items()
        ]
        assert sorted(noted) == sorted(expected)


def test_a_name_that_is_a_key_of_the_place_is_not_another_ones() -> None:
    for names in TABLES:
        keys = {*names.of, *names.names}
        assert not keys & standard_names(keys).keys()


DIFFERENT = {
    "TRAINING": {
        "TRL": "gradient_accumulation_steps max_seq_length warmup_steps optim bf16 fp16 "
        "torch_dtype attn_implementation eval_strategy eval_steps report_to output_dir "
        "use_peft load_in_4bit "
        "dataset_name model_name_or_path per_device_eval_batch_size dataset_num_proc "
        "resume_from_checkpoint deepspeed fsdp save_strategy logging_dir num_generations",
        "LLaMA-Factory": "cutoff_len finetuning_type lora_rank lora_alpha lora_target template "
        "quantization_bit flash_attn val_size preprocessing_num_workers overwrite_output_dir "
        "plot_loss do_train dataset dataset_dir",
        "axolotl": "base_model datasets sequence_len sample_packing adapter lora_r optimizer "
        "val_set_size wandb_project flash_attention gradient_accumulation_steps "
        "pad_to_sequence_len train_on_inputs chat_template",
        "OpenRLHF": "pretrain train_batch_size max_len zero_stage save_path input_key "
        "apply_chat_template use_wandb l2 actor_learning_rate adam_offload",
    },
    "PREFERENCE": {"TRL": "loss_type rpo_alpha ref_model precompute_ref_log_probs "
                   "max_prompt_length",
                   "LLaMA-Factory": "pref_loss pref_ftx ref_model"},
    "SAMPLING": {"vLLM": "top_k min_p repetition_penalty n best_of presence_penalty",
                 "transformers": "do_sample num_beams max_length min_new_tokens"},
    "SERVING": {"vLLM": "port host served_model_name data_parallel_size swap_space "
                "tokenizer enable_lora"},
    "PPO": {"TRL": "kl_coef gamma vf_coef whiten_rewards",
            "verl": "kl_loss_coef ppo_mini_batch_size ppo_micro_batch_size_per_gpu"},
    "GRPO": {"TRL": "num_iterations max_completion_length use_vllm reward_funcs"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("place", "tool"), [(place, tool) for place, tools in DIFFERENT.items() for tool in tools]
)
def test_a_name_that_differs_says_what_to_write(
    place: str, tool: str, tmp_path: Path, table: BackendTable
) -> None:
    names = DIFFERENT[place][tool].split()
    more = {place: ", ".join(f"{name}: 1" for name in names)}
    found = compiled(tmp_path, table, {}, more).diagnostics
    answers = {each.message.split("`")[1]: each.fix for each in found if each.code == "AGC201"}
    assert [name for name in names if not answers.get(name)] == []

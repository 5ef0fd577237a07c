"""Configurations and command lines of other tools given as specs: one message, with the parts of a
spec that they become. The parts compile.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from agentc.backend_api import BackendTable, load_backends
from agentc.compilation import compile_spec

AXOLOTL = """\
base_model: NousResearch/Llama-3.2-1B
datasets: [{path: teknium/GPT4-LLM-Cleaned, type: alpaca}]
adapter: lora
sequence_len: 2048
sample_packing: true
lora_r: 16
lora_alpha: 32
micro_batch_size: 2
gradient_accumulation_steps: 4
num_epochs: 1
optimizer: adamw_8bit
lr_scheduler: cosine
learning_rate: 0.0002
"""
LLAMA_FACTORY = """\
### model
model_name_or_path: meta-llama/Meta-Llama-3-8B-Instruct
stage: dpo
finetuning_type: lora
lora_rank: 8
pref_beta: 0.1
pref_loss: sigmoid
dataset: dpo_en_demo
cutoff_len: 2048
per_device_train_batch_size: 1
gradient_accumulation_steps: 8
learning_rate: 5.0e-6
num_train_epochs: 3.0
lr_scheduler_type: cosine
warmup_ratio: 0.1
"""
TRL = """\
model_name_or_path: Qwen/Qwen2-0.5B
dataset_name: trl-lib/Capybara
learning_rate: 2.0e-5
num_train_epochs: 1
packing: true
per_device_train_batch_size: 2
gradient_accumulation_steps: 8
use_peft: true
lora_r: 32
"""
VERL = """\
actor_rollout_ref:
  model: {path: Qwen/Qwen2-7B-Instruct}
  actor: {optim: {lr: 1e-6}, use_kl_loss: true}
algorithm: {adv_estimator: grpo}
data: {train_files: x.parquet, max_prompt_length: 512}
trainer: {total_epochs: 15}
"""
OPENRLHF = """\
#!/bin/bash
set -x
deepspeed --module openrlhf.cli.train_dpo \\
   --save_path ./checkpoint \\
   --train_batch_size 256 \\
   --micro_train_batch_size 1 \\
   --pretrain OpenRLHF/Llama-3-8b-sft-mixture \\
   --bf16 \\
   --max_epochs 1 --max_len 8192 \\
   --learning_rate 5e-7 --beta 0.1: yes
"""
VERL_COMMAND = """\
python3 -m verl.trainer.main_ppo \\
    algorithm.adv_estimator=grpo \\
    actor_rollout_ref.model.path=Qwen/Qwen2-7B-Instruct
"""
TRL_COMMAND = "trl dpo --model_name_or_path Qwen/Qwen2-0.5B --learning_rate 1e-6 --beta 0.1\n"
VLLM = "model: Qwen/Qwen2.5-0.5B\ntensor-parallel-size: 2\nmax-model-len: 4096\nport: 8000\n"
DEEPSPEED = "zero_optimization: {stage: 3}\ntrain_micro_batch_size_per_gpu: 2\nfp16: {}\n"

SPEC = """\
agentc: 1
name: drafted
models: {base: {backend: scratch, chat_format: chatml, corpus: talk, context: 8192}}
stages:
  talk: {kind: dataset, path: talk.json}
  pairs: {kind: dataset, path: pairs.json, format: preference}
"""


@pytest.fixture(scope="module")
def table() -> BackendTable:
    return load_backends()


@pytest.mark.parametrize(
    ("text", "tool", "line", "model", "training"),
    [
        (AXOLOTL, "axolotl", 1, "NousResearch/Llama-3.2-1B", {
            "kind": "sft", "lr": "0.0002", "epochs": "1", "micro_batch": "2", "global_batch": "8",
            "scheduler": "cosine", "max_length": "2048", "lora": {"rank": "16", "alpha": "32"}}),
        (LLAMA_FACTORY, "LLaMA-Factory", 3, "meta-llama/Meta-Llama-3-8B-Instruct", {
            "kind": "dpo", "lr": "5.0e-6", "epochs": "3.0", "micro_batch": "1", "beta": "0.1",
            "global_batch": "8", "scheduler": "cosine", "warmup_ratio": "0.1",
            "max_length": "2048", "lora": {"rank": "8"}}),
        (TRL, "TRL", 2, "Qwen/Qwen2-0.5B", {
            "kind": "sft", "lr": "2.0e-5", "epochs": "1", "micro_batch": "2",
            "global_batch": "16", "lora": {"rank": "32"}}),
        (OPENRLHF, "OpenRLHF", 3, "OpenRLHF/Llama-3-8b-sft-mixture", {
            "kind": "dpo", "lr": "5e-7", "epochs": "1", "micro_batch": "1",
            "global_batch": "256", "max_length": "8192"}),
        (TRL_COMMAND, "TRL", 1, "Qwen/Qwen2-0.5B", {"kind": "dpo", "lr": "1e-6", "beta": "0.1"}),
        (VERL, "verl", 1, "Qwen/Qwen2-7B-Instruct", None),
        (VERL_COMMAND, "verl", 1, "Qwen/Qwen2-7B-Instruct", None),
    ],
)  # fmt: skip
def test_a_training_of_another_tool_becomes_parts_of_a_spec(
    text: str,
    tool: str,
    line: int,
    model: str,
    training: dict[str, object] | None,
    tmp_path: Path,
    table: BackendTable,
) -> None:
    path = tmp_path / "other.yaml"
    path.write_text(text)
    (found,) = compile_spec(path, {}, table).diagnostics
    assert (found.code, found.span and found.span.line) == ("AGC214", line)
    assert re.search(rf"this is a (configuration|command) of {tool}, not a spec", found.message)
    notes = "\n".join(found.notes)
    assert f"`models: {{base: {model}}}`" in notes
    drafted = re.search(r"`(stages: .*?)`(;|$)", notes, re.MULTILINE)
    if training is None:
        assert drafted is None
        assert "GRPO is `kind: online_rl`" in notes
        return
    assert drafted is not None
    (stage,) = yaml.load(drafted[1], yaml.BaseLoader)["stages"].values()
    assert stage == {"model": "base", "data": "DATA", **training}
    (tmp_path / "talk.json").write_text(
        '[{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}]'
    )
    (tmp_path / "pairs.json").write_text('[{"prompt": "a", "chosen": "b", "rejected": "c"}]')
    data = "pairs" if training["kind"] == "dpo" else "talk"
    given = {"lr": "1e-6", "global_batch": "8", "max_length": "64", "beta": "0.1", **stage}
    if training["kind"] != "dpo":
        del given["beta"]
    whole = yaml.load(SPEC, yaml.BaseLoader)
    whole["stages"]["drafted"] = {**given, "data": data}
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(whole).replace("'", ""))
    compiled = compile_spec(tmp_path / "spec.yaml", {}, table)
    assert [each.message for each in compiled.diagnostics if each.severity == "error"] == []


@pytest.mark.parametrize(
    ("text", "tool", "part"),
    [
        (VLLM, "vLLM", "{local: {backend: vllm, tensor_parallel: 2, max_model_len: 4096}}"),
        ("vllm serve Qwen/Qwen2.5-0.5B --tensor-parallel-size 2", "vLLM", "tensor_parallel: 2"),
        ("output_dir: out\nper_device_train_batch_size: 4\nlr: 1\n", "TRL", "micro_batch: 4"),
        (DEEPSPEED, "DeepSpeed", "are keys of DeepSpeed"),
        ("llamafactory-cli train x.yaml", "LLaMA-Factory", "kind: sft"),
        ("accelerate launch -m axolotl.cli.train x.yaml", "axolotl", "kind: sft"),
    ],
)
def test_other_files_are_named(
    text: str, tool: str, part: str, tmp_path: Path, table: BackendTable
) -> None:
    path = tmp_path / "other.yaml"
    path.write_text(text)
    (found,) = compile_spec(path, {}, table).diagnostics
    assert found.code == "AGC214"
    assert f"of {tool}, not a spec" in found.message
    assert part in "\n".join(found.notes)


def test_a_spec_that_mentions_a_command_is_a_spec(tmp_path: Path, table: BackendTable) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text("# as openrlhf.cli.train_dpo does\nagentc: 1\nname: mine\n")
    assert "AGC214" not in {found.code for found in compile_spec(path, {}, table).diagnostics}

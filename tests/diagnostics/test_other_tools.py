"""Words of other tools get ours: each name in the tables exists, and none of them hides a key of
the language; whole configuration files are recognised."""

from __future__ import annotations

import re

import pytest

from agentc.backend_api import BackendTable, load_backends
from agentc.diagnostics import Sink, render_text
from agentc.diagnostics.other_methods import KIND_ADVICE, advice_for_kind
from agentc.diagnostics.other_tools import advice_for_key
from agentc.diagnostics.synonyms import SYNONYMS, folded
from agentc.front.read_module import build_module
from agentc.kinds import KINDS, kind_named
from agentc.kinds.metric_names import METRIC_NAMES
from agentc.runtime.contracts.table_contracts import VERDICTS
from agentc.schema import language
from agentc.source.load import load_bytes


@pytest.fixture(scope="module")
def table() -> BackendTable:
    return load_backends()


def _names(table: BackendTable) -> set[str]:
    """Every key, kind, backend, choice, metric and verdict that there is."""
    names = {
        *METRIC_NAMES,
        *VERDICTS,
        *language.REPEAT_INNER_KEYS,
        *(f.name for f in language.UNTIL_FIELDS),
    }
    for keys in (language.TOP_LEVEL, language.STAGE_KEYS, language.PROMPT_KEYS):
        names |= set(keys)
    own = (language.PROMPT_FIELDS, language.PLACEMENT_FIELDS, language.CLAIM_FIELDS)
    own += (language.SEARCH_FIELDS, language.SEARCH_RANGE_FIELDS)
    fields = [field for group in own for field in group]
    fields += [field for kind in KINDS for field in kind.fields]
    for backend in table:
        names |= {backend.id, *backend.id.split(".")}
        fields += [*getattr(backend, "options", ()), *getattr(backend, "fields", ())]
    for kind in KINDS:
        names |= {kind.name, *kind.uses, *(role.name for role in kind.roles)}
    for field in fields:
        names |= {field.name, *(inner.name for inner in field.fields)}
        choices = field.schema.get("enum")
        names |= {str(choice) for choice in choices} if isinstance(choices, list) else set()
    return names


def test_synonyms_are_names_that_exist(table: BackendTable) -> None:
    names = _names(table)
    unknown = {name for meant in SYNONYMS.values() for name in meant if name not in names}
    assert unknown == set()
    assert [word for word in SYNONYMS if word != folded(word)] == []


@pytest.mark.parametrize("kind", sorted(KIND_ADVICE))
def test_advice_on_a_kind_names_kinds_that_exist(kind: str) -> None:
    assert kind_named(kind) is None
    text = advice_for_kind(kind) or ""
    for name in re.findall(r"`kind: (\w+)`", text):
        assert kind_named(name) is not None, text


SFT = [field.name for field in next(kind for kind in KINDS if kind.name == "sft").fields]
DECODE = ["temperature", "top_p", "max_tokens", "stop"]


@pytest.mark.parametrize(
    ("key", "allowed", "words"),
    [
        ("bf16", SFT, "`dtype: bfloat16`"),
        ("fp16", SFT, "float16 is not supported"),
        ("gradient_accumulation_steps", SFT, "`global_batch: N`"),
        ("finetuning_type", SFT, "`lora: {rank: 16}`"),
        ("deepspeed", SFT, "`sharding: full`"),
        ("optim", SFT, "AdamW"),
        ("warmup_steps", SFT, "`warmup_ratio: SHARE`"),
        ("report_to", SFT, "`track: wandb`"),
        ("top_k", DECODE, "do not sample by top-k"),
        ("n", DECODE, "`attempts: N`"),
        ("n", ["limit", "attempts"], "`limit: N` for N tasks"),
        ("repetition_penalty", DECODE, "`temperature` and `top_p` only"),
        ("output_dir", list(language.TOP_LEVEL), "`--store DIR`"),
        ("seeds", list(language.TOP_LEVEL), "`matrix: {seed: [0, 1]}`"),
        ("kl_coef", ["actor", "critic"], "kl_penalty"),
    ],
)
def test_advice_on_a_key(key: str, allowed: list[str], words: str) -> None:
    assert words in (advice_for_key(key, allowed) or "")


CONFIGS = {
    "axolotl": """\
base_model: NousResearch/Llama-3.2-1B
datasets:
  - path: teknium/GPT4-LLM-Cleaned
    type: alpaca
val_set_size: 0.1
adapter: lora
lora_r: 16
sequence_len: 2048
sample_packing: true
gradient_accumulation_steps: 2
micro_batch_size: 2
learning_rate: 0.0002
bf16: auto
""",
    "LLaMA-Factory": """\
model_name_or_path: Qwen/Qwen3-4B
stage: dpo
do_train: true
finetuning_type: lora
lora_target: all
pref_beta: 0.1
dataset: dpo_en_demo
cutoff_len: 2048
output_dir: saves/dpo
per_device_train_batch_size: 1
learning_rate: 5.0e-6
""",
    "verl": """\
hydra:
  searchpath: [file://verl/trainer/config]
data:
  train_files: train.parquet
  max_prompt_length: 512
actor_rollout_ref:
  model: {path: Qwen/Qwen2.5-0.5B}
  rollout: {name: vllm, n: 8}
algorithm: {adv_estimator: grpo}
trainer: {total_epochs: 15}
""",
    "TRL": """\
model_name_or_path: Qwen/Qwen2-0.5B
dataset_name: trl-lib/Capybara
learning_rate: 2.0e-4
num_train_epochs: 1
use_peft: true
lora_r: 32
lora_alpha: 16
output_dir: out
""",
    "OpenRLHF": """\
pretrain: meta-llama/Llama-3-8B
prompt_data: OpenRLHF/prompts
micro_train_batch_size: 2
train_batch_size: 128
rollout_batch_size: 1024
init_kl_coef: 0.01
zero_stage: 3
""",
    "DeepSpeed": """\
train_micro_batch_size_per_gpu: auto
gradient_clipping: 1.0
zero_optimization: {stage: 3}
bf16: {enabled: true}
""",
    "Accelerate": """\
compute_environment: LOCAL_MACHINE
distributed_type: MULTI_GPU
mixed_precision: bf16
num_machines: 1
num_processes: 4
""",
    "Snakemake (a profile)": """\
executor: slurm
jobs: 100
default-resources: [mem_mb=8000]
keep-going: true
""",
}


def _said(text: str, table: BackendTable) -> str:
    sink = Sink()
    source, root = load_bytes(text.encode(), "config.yaml", sink)
    build_module(source, root, {}, table, sink)
    return render_text(sink.sorted())


@pytest.mark.parametrize("tool", CONFIGS)
def test_a_configuration_of_another_tool_is_one_message(tool: str, table: BackendTable) -> None:
    said = _said(CONFIGS[tool], table)
    assert f"error[AGC214]: this is a configuration of {tool}, not a spec of agentc" in said
    assert said.endswith("\n1 error\n")


@pytest.mark.parametrize(
    "text",
    [
        "name: demo\nmodels: {base: {backend: scratch}}\nstages: {}\n",
        "agentc: 1\nname: demo\nlearning_rate: 1\nnum_train_epochs: 1\nfinetuning_type: lora\n"
        "cutoff_len: 3\n",
        "stage: sft\nmodel: x\n",
    ],
)
def test_a_spec_is_not_taken_for_one(text: str, table: BackendTable) -> None:
    assert "AGC214" not in _said(text, table)

"""Advice for what other tools have and agentc writes in another way: keys, kinds, whole software
environments. `synonyms.py` has those for which another name is enough.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import PurePath
from typing import NamedTuple

from agentc.diagnostics.synonyms import folded


class _Advice(NamedTuple):
    """`text` is the help for a key where all of `where` are allowed keys."""

    text: str
    where: tuple[str, ...] = ()


def _same(text: str, *keys: str, where: tuple[str, ...] = ()) -> dict[str, tuple[_Advice, ...]]:
    return dict.fromkeys(keys, (_Advice(text, where),))


_QUANTISED = "training on quantised weights (QLoRA) is not supported"
_OWN_TOKENIZER = "leave it out: the checkpoint brings its tokenizer and chat template"
_OF_MODELS = ("architecture", "repo", "path")
_PRECISION_OF_MODELS = _Advice(
    "write `dtype: bfloat16` in the stages that train the model, and under the servers that serve "
    "it",
    _OF_MODELS,
)
_ATTENTION_OF_MODELS = _Advice(
    "write `attention: flash` in the stages that train the model", _OF_MODELS
)

ADVICE: dict[str, tuple[_Advice, ...]] = {
    **dict.fromkeys(("torch_dtype", "dtype", "precision"), (_PRECISION_OF_MODELS,)),
    "bf16": (_PRECISION_OF_MODELS, _Advice("write `dtype: bfloat16`", ("dtype",))),
    "fp16": (
        _PRECISION_OF_MODELS,
        _Advice("write `dtype: bfloat16`; training in float16 is not supported", ("dtype",)),
    ),
    **dict.fromkeys(
        ("load_in_4bit", "load_in_8bit", "quantization_bit", "quantization_config", "qlora"),
        (
            _Advice(
                "write `dtype: bfloat16` and `lora: {rank: 16}` in the stages that train the "
                f"model, to save memory; {_QUANTISED}",
                _OF_MODELS,
            ),
            _Advice(
                f"write `dtype: bfloat16` and `lora: {{rank: 16}}` to save memory; {_QUANTISED}",
                ("lora",),
            ),
        ),
    ),
    **_same(
        "write `lora: {rank: 16}`; without `lora`, all weights are trained",
        *("finetuning_type", "use_lora", "use_peft", "adapter"),
        where=("lora",),
    ),
    **_same(
        "write `global_batch: N`, the examples of one optimiser step over all devices; "
        "accumulation follows from it and `micro_batch`, the examples of a device at a time",
        *("gradient_accumulation_steps", "grad_accum"),
        where=("global_batch",),
    ),
    **_same(
        "write `warmup_ratio: SHARE`, the share of all steps",
        *("warmup_steps", "warmup", "lr_warmup_steps"),
        where=("warmup_ratio",),
    ),
    **_same(
        "leave it out: trainers use AdamW, with `adam_beta1`, `adam_beta2` and `weight_decay`",
        *("optim", "optimizer", "optimiser"),
        where=("weight_decay",),
    ),
    **_same(
        "write `sharding: full` (as ZeRO-3 and FSDP) or `sharding: optimizer` (as ZeRO-2)",
        *("deepspeed", "deepspeed_config", "fsdp_config", "fsdp", "zero_stage"),
        where=("sharding",),
    ),
    **dict.fromkeys(
        ("flash_attn", "flash_attention", "use_flash_attention_2", "attn_implementation"),
        (_ATTENTION_OF_MODELS, _Advice("write `attention: flash`", ("attention",))),
    ),
    **_same(
        "add a stage of kind `evaluate`; trainings do not evaluate while they run",
        *("eval_steps", "eval_strategy", "evaluation_strategy", "do_eval", "eval_dataset"),
        *("val_size", "val_set_size", "test_freq", "eval_every", "per_device_eval_batch_size"),
        where=("lr",),
    ),
    **_same(
        "leave it out: results go to the store, which `--store DIR` or AGENTC_STORE chooses",
        *("output_dir", "save_path", "save_dir", "default_local_dir", "out_dir", "log_dir"),
        "logging_dir",
    ),
    **_same(
        "leave it out: `agentc run` resumes what was interrupted and reuses what is finished",
        *("resume_from_checkpoint", "resume", "overwrite_output_dir", "do_train", "cache"),
    ),
    **_same(
        "write `track: wandb` at the top level of the spec (or tensorboard, mlflow, trackio)",
        *("report_to", "wandb", "wandb_project", "use_wandb", "tensorboard", "logger"),
    ),
    **_same(
        "leave it out: agentc places work itself; `placement: {gpus: N}` of a stage requests GPUs",
        *("device", "device_map", "cuda", "accelerator", "use_cpu", "cuda_visible_devices"),
    ),
    **_same(
        "leave it out: data is loaded by the trainer, without workers to choose",
        *("dataloader_num_workers", "preprocessing_num_workers", "num_workers"),
    ),
    **_same(
        "leave it out: a stage runs when the stages are finished that it names as its inputs, in "
        "`model`, `data` and the like",
        *("depends_on", "needs", "requires", "after", "dependencies", "depends"),
    ),
    **_same(
        "leave it out: no stage is conditional. `scales:` has smaller variants of the spec, and "
        "`agentc run --until STAGE` makes a part of it",
        *("when", "if", "condition", "enabled", "skip", "only_if"),
    ),
    **_same(
        "write `use: ./FILE.yaml`, a template; the keys of this spec are laid over it",
        *("extends", "inherits", "include", "_base_", "import"),
    ),
    **_same(
        "leave it out: rewards come from the environment of the stage; a custom one is a file next "
        "to the spec (docs/environments.md)",
        *("reward_function", "reward_fn", "reward_func", "reward_funcs", "reward_model"),
        "custom_reward_function",
    ),
    **_same(
        "the words go into `command`: write `command: [program, --option, value]`",
        *("args", "arguments", "argv"),
        where=("command",),
    ),
    **_same("write `variables: {NAME: value}`", "env", "environ", "envs", where=("variables",)),
    **_same(
        "leave it out: agentc chooses where a server listens, and gives its address to the jobs "
        "that request it",
        *("port", "host", "address", "served_model_name"),
        where=("start_minutes",),
    ),
    "top_k": (
        _Advice(
            "leave it out: the model servers do not sample by top-k; `top_p` and `temperature` "
            "limit sampling",
            ("temperature",),
        ),
        _Advice("leave it out: the model servers do not sample by top-k"),
    ),
    **_same(
        "leave it out: the model servers sample by `temperature` and `top_p` only",
        *("min_p", "typical_p", "repetition_penalty", "presence_penalty", "frequency_penalty"),
        *("num_beams", "length_penalty", "early_stopping"),
        where=("temperature",),
    ),
    "do_sample": (
        _Advice("leave it out: `temperature: 0` is greedy, any other samples", ("temperature",)),
    ),
    **_same(
        "write `attempts: N` in the stage: how often each task is played",
        *("n", "num_return_sequences", "num_samples", "n_samples", "best_of"),
        where=("temperature", "max_tokens"),
    ),
    "n": (
        _Advice("write `attempts: N` in the stage", ("temperature", "max_tokens")),
        _Advice(
            "write `limit: N` for N tasks, or `attempts: N` for N episodes of each task",
            ("limit", "attempts"),
        ),
        _Advice("write `limit: N`", ("limit",)),
    ),
    **_same(
        "leave it out: the trainer plays the episodes itself",
        *("use_vllm", "vllm_mode", "vllm_gpu_memory_utilization"),
    ),
    "num_generations": (
        _Advice(
            "leave it out: it belongs to GRPO, which is `kind: online_rl` with `algorithm: grpo`; "
            "several episodes of a task are `attempts: N` of a rollout",
            ("lr", "global_batch"),
        ),
        _Advice(
            "write `algorithm: grpo` and `options: {group: N}`, the episodes of one task that are "
            "compared",
            ("iterations", "episodes"),
        ),
    ),
    **dict.fromkeys(
        ("kl_coef", "init_kl_coef", "kl_loss_coef", "kl_penalty"),
        (
            _Advice(
                "write `actor: {kl_penalty: X}` (with `algorithm: grpo`: `options: {beta: X}`)",
                ("actor",),
            ),
            _Advice("write `actor: {kl_penalty: X}` in the stage", ("gae_lambda",)),
        ),
    ),
    **_same(
        "write `chat_format: NAME` in the model, under `models`; `tokenizer` is the model's own "
        "template",
        *("template", "apply_chat_template", "prompt_template"),
        where=("lr",),
    ),
    "chat_template": (
        _Advice("write `chat_format: NAME` in the model, under `models`", ("lr",)),
        _Advice(_OWN_TOKENIZER, ("start_minutes",)),
    ),
    **_same(
        "leave it out: the report has the curves of every training",
        *("plot_loss", "logging_first_step"),
        where=("lr",),
    ),
    **_same(
        "leave it out: rows are padded as batches need it; `packing: true` packs several into one "
        "sequence",
        *("pad_to_sequence_len", "pad_to_multiple_of", "group_by_length"),
        where=("lr",),
    ),
    **_same(
        "leave it out: replies of the agent are trained, never prompts or observations; `loss_on` "
        "chooses which replies",
        *("train_on_inputs", "train_on_prompt", "completion_only_loss", "assistant_only_loss"),
        where=("loss_on",),
    ),
    **_same(
        "leave it out: data is a stage, `NAME: {kind: dataset, path: FILE, format: ...}`, whose "
        "`format` names the fields of its records",
        *("input_key", "output_key", "input_template", "dataset_text_field", "formatting_func"),
        where=("lr",),
    ),
    **_same(
        "leave it out: the reference is evaluated as the backend needs it",
        *("precompute_ref_log_probs", "ref_offload", "disable_dropout"),
        where=("beta",),
    ),
    **_same(
        "write `max_tokens: N`, the tokens of the reply without the prompt",
        *("max_length", "max_len"),
        where=("max_tokens", "temperature"),
    ),
    **_same(
        "leave it out: a reply ends where the model ends it; `max_tokens` is the upper limit",
        *("min_new_tokens", "min_tokens", "min_length", "ignore_eos"),
        where=("max_tokens", "temperature"),
    ),
    **_same(
        "write `replicas: N`: copies of the server, each on devices of its own",
        *("data_parallel_size", "data_parallel", "num_replicas", "vllm_num_engines"),
        where=("gpu_memory_utilization",),
    ),
    **_same(
        "leave it out: `cpu_offload_gb` and `kv_cache_dtype` save memory of a device",
        *("swap_space", "kv_offloading_size"),
        where=("gpu_memory_utilization",),
    ),
    **_same(
        _OWN_TOKENIZER,
        *("tokenizer", "tokenizer_mode"),
        where=("start_minutes",),
    ),
    **_same(
        "leave it out: a training with `lora` merges its adapters into the checkpoint",
        *("enable_lora", "lora_modules", "max_loras", "max_lora_rank"),
        where=("start_minutes",),
    ),
    **_same(
        "write `discount: X` in the stage: the worth of a reward one turn later, where other tools "
        "count tokens",
        *("gamma", "discount_factor"),
        where=("gae_lambda",),
    ),
    **_same(
        "leave it out: the values have an optimiser of their own; write `critic: {lr: X}` in the "
        "stage",
        *("vf_coef", "value_loss_coef", "critic_learning_rate"),
        where=("gae_lambda",),
    ),
    **_same(
        "leave it out: rewards stay as they are; `normalise` standardises advantages",
        *("whiten_rewards", "normalize_reward", "reward_clip_range"),
        where=("gae_lambda",),
    ),
    **_same(
        "write `actor: {batch: N}` in the stage: the utterances of one gradient step",
        *("ppo_mini_batch_size", "num_mini_batches", "mini_batch_size"),
        where=("gae_lambda",),
    ),
    **_same(
        "write `micro_batch: N` in the stage: the rows that go through a model at once",
        *("ppo_micro_batch_size_per_gpu", "local_rollout_forward_batch_size"),
        where=("gae_lambda",),
    ),
    **_same(
        "write `minibatches: M` here and `actor: {updates: K}` in the stage, with K = M times the "
        "passes over the episodes of an iteration",
        *("num_iterations", "ppo_epochs", "steps_per_generation"),
        where=("clip_low", "group"),
    ),
    **_same(
        "write `decode: {max_tokens: N}` in the stage: the tokens of one reply, where other tools "
        "count all of an episode",
        *("max_completion_length", "max_response_length", "response_length"),
        where=("clip_low", "group"),
    ),
    "filter": (
        _Advice(
            "write `min_reward: 1` for episodes that reach it, `best_per_task: N` or "
            "`keep_best: SHARE`",
            ("min_reward",),
        ),
    ),
    "seeds": (
        _Advice(
            "write `matrix: {seed: [0, 1]}`, and "
            '`seed: "{{ seed }}"` in stages or `defaults:`',
            ("matrix",),
        ),
        _Advice('write `matrix: {seed: [0, 1]}` at the top level, and `seed: "{{ seed }}"` here',
                ("seed",)),
    ),
    "evaluations": (_Advice("evaluations are stages: `NAME: {kind: evaluate, ...}` under `stages:`",
                            ("stages",)),),
    **_same(
        "models to start from are declared under `models`, trainings under `stages`",
        *("model", "base_model", "model_name", "model_name_or_path", "policy"),
        where=("models", "stages"),
    ),
    **_same(
        "data is a stage: `NAME: {kind: dataset, path: FILE}` under `stages:`",
        *("dataset", "datasets", "data", "dataset_name", "train_dataset"),
        where=("models", "stages"),
    ),
    "parallelism": (_Advice("write `tensor_parallel: N` or `pipeline_parallel: N`",
                            ("tensor_parallel",)),),
}  # fmt: skip


def advice_for_key(key: str, allowed: Collection[str]) -> str | None:
    """Help for a key of another tool at a place that allows these keys; None where there is none,
    or a synonym says enough."""
    for advice in ADVICE.get(folded(key), ()):
        if all(name in allowed for name in advice.where):
            return advice.text
    return None


NO_EXISTING_PYTHON = (
    "packages that are installed already (conda, `module load`, a virtual environment) cannot be "
    "used; `software:` takes the path of a lock"
)
LOCK_INSTEAD = (
    "pin the versions that you want in a lock and add hashes by `agentc software hash LOCK` "
    "(`--file WHEEL` for a build that no index has), or name an image of Apptainer, NGC's too, by "
    "a lock of one line: `# agentc: container IMAGE.sif sha256:...`. "
    "AGENTC_PYTHON_3_12=/path/to/python3.12 names the interpreter that software is built with"
)
_OF_LOCKS = (".txt", ".lock", ".in")


def names_no_lock(file: str) -> bool:
    """Whether a path looks like an interpreter, a folder or an image."""
    return PurePath(file).suffix not in _OF_LOCKS

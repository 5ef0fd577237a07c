"""Configuration files and command lines of other tools, recognised by their keys and programs: one
message for the file, instead of one for each key."""

from __future__ import annotations

import re
from collections.abc import Iterable

from agentc.diagnostics.diagnostic import Source, Span
from agentc.diagnostics.other_methods import advice_for_kind
from agentc.diagnostics.sink import Sink
from agentc.diagnostics.suggest import listed
from agentc.diagnostics.synonyms import synonyms
from agentc.kinds import KINDS
from agentc.schema.foreign_drafts import draft, method_of, options_of, settings_of
from agentc.schema.language import TOP_LEVEL
from agentc.schema.standard_names import SERVING
from agentc.source.tree import Mapping, Node

_TRAINER_KEYS = (
    "model_name_or_path", "per_device_train_batch_size", "gradient_accumulation_steps",
    "learning_rate", "num_train_epochs", "lr_scheduler_type", "output_dir", "logging_steps",
)  # fmt: skip
"""Keys of the hub's trainer, which several tools share."""

_TOOLS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "LLaMA-Factory": (
        ("finetuning_type", "cutoff_len", "template", "stage", "dataset_dir", "lora_target",
         "do_train", "pref_beta", "pref_loss", "preprocessing_num_workers", "plot_loss"),
        _TRAINER_KEYS,
    ),
    "axolotl": (
        ("base_model", "datasets", "sequence_len", "micro_batch_size", "adapter", "val_set_size",
         "sample_packing", "dataset_prepared_path", "lora_r", "lora_target_linear", "num_epochs",
         "pad_to_sequence_len", "processor_type", "chat_template", "lora_target_modules"),
        ("gradient_accumulation_steps", "learning_rate", "lr_scheduler", "optimizer", "output_dir"),
    ),
    "verl": (
        ("actor_rollout_ref", "trainer", "algorithm", "custom_reward_function", "reward_model",
         "critic", "ray_init", "ray_kwargs", "actor", "rollout", "ref"),
        ("data", "defaults", "hydra"),
    ),
    "OpenRLHF": (
        ("pretrain", "prompt_data", "input_key", "apply_chat_template", "reward_pretrain",
         "micro_train_batch_size", "micro_rollout_batch_size", "rollout_batch_size",
         "actor_num_nodes", "actor_num_gpus_per_node", "vllm_num_engines", "zero_stage",
         "generate_max_len", "prompt_max_len", "actor_learning_rate", "init_kl_coef", "save_path",
         "n_samples_per_prompt", "advantage_estimator", "critic_pretrain", "remote_rm_url"),
        ("train_batch_size", "max_epochs", "max_len", "learning_rate", "dataset", "bf16"),
    ),
    "TRL": (
        ("dataset_name", "dataset_train_split", "use_peft", "lora_r", "lora_alpha", "max_length",
         "num_generations", "max_prompt_length", "max_completion_length", "loss_type",
         "attn_implementation", "torch_dtype", "dataset_config", "use_vllm", "dataset_num_proc",
         "reward_funcs", "dataset_mixer", "preprocessing_num_workers"),
        (*_TRAINER_KEYS, "report_to", "bf16", "gradient_checkpointing", "eval_strategy"),
    ),
    "Accelerate": (
        ("compute_environment", "distributed_type", "machine_rank", "main_training_function",
         "mixed_precision", "num_machines", "rdzv_backend", "deepspeed_config", "fsdp_config"),
        ("num_processes", "use_cpu", "same_network"),
    ),
    "DeepSpeed": (
        ("zero_optimization", "train_micro_batch_size_per_gpu", "zero_allow_untested_optimizer",
         "zero_force_ds_cpu_optimizer"),
        ("fp16", "bf16", "gradient_clipping", "train_batch_size", "optimizer", "scheduler"),
    ),
    "vLLM": (
        ("tensor_parallel_size", "max_model_len", "gpu_memory_utilization", "served_model_name",
         "max_num_seqs", "enable_prefix_caching", "pipeline_parallel_size", "kv_cache_dtype",
         "max_num_batched_tokens", "enable_lora", "swap_space", "data_parallel_size"),
        ("model", "port", "host", "dtype", "tokenizer", "api_key", "quantization"),
    ),
    "torchtune": (
        ("tokenizer", "checkpointer", "metric_logger", "max_steps_per_epoch",
         "enable_activation_checkpointing", "compile", "profiler"),
        ("model", "dataset", "optimizer", "loss", "epochs", "batch_size", "output_dir", "dtype"),
    ),
    "Snakemake (a profile)": (
        ("executor", "default-resources", "set-resources", "jobs", "rerun-incomplete",
         "latency-wait", "cluster", "use-conda", "keep-going", "restart-times", "set-threads"),
        ("cores", "software-deployment-method"),
    ),
}  # fmt: skip
"""For each tool the keys that are its own, and others that its files have."""


_PROGRAMS: dict[str, str] = {
    "OpenRLHF": r"openrlhf\.cli\.(?:train_(?P<method>sft|dpo|rm|ppo)\w*|\w+)",
    "verl": r"verl\.trainer\.(?:main_(?P<method>ppo)|(?:fsdp_)?(?P<sft>sft)_trainer|\w+)",
    "LLaMA-Factory": r"llamafactory-cli\s+train",
    "axolotl": r"axolotl(?:\.cli\.|\s+)train",
    "TRL": r"(?:\btrl\s+(?P<method>sft|dpo|grpo|rloo)\b|trl/scripts/(?P<script>sft|dpo|grpo)\b)",
    "vLLM": r"vllm\s+serve|vllm\.entrypoints\.openai",
}
"""Programs of other tools in a command line; a group that matches is the method."""


def report_foreign_command(source: Source, sink: Sink) -> bool:
    """Whether the file is a shell script that calls another tool, which is reported."""
    if re.search(r"^agentc\s*:", source.text, re.MULTILINE):
        return False
    for tool, pattern in _PROGRAMS.items():
        match = re.search(pattern, source.text)
        if match is None:
            continue
        start = source.text.rfind("\n", 0, match.start()) + 1
        line = source.text.count("\n", 0, start) + 1
        columns = (match.start() - start + 1, match.end() - start + 1)
        method = next((value for value in match.groupdict().values() if value), None)
        _report(
            tool,
            f"this is a command of {tool}, not a spec of agentc",
            Span(source, line, columns[0], line, columns[1]),
            options_of(source.text[match.end() :]),
            method,
            sink,
        )
        return True
    return False


def report_foreign_config(root: Node, sink: Sink) -> bool:
    """Whether the file is a configuration of another tool, which is reported."""
    if not isinstance(root, Mapping):
        return False
    keys = {entry.key.text.replace("-", "_"): entry.key for entry in root.entries}
    keys |= {entry.key.text: entry.key for entry in root.entries}
    if keys.keys() & {"agentc", "stages", "use"}:
        return False
    scores = {
        tool: (sum(key in keys for key in own), sum(key in keys for key in other))
        for tool, (own, other) in _TOOLS.items()
    }
    tool = max(scores, key=lambda name: (2 * scores[name][0] + scores[name][1], scores[name]))
    own, shared = scores[tool]
    if own < 2 or own + shared < 3:
        # The smallest TRL config has only what all trainers of the hub have.
        if "output_dir" not in keys or not any(key.startswith("per_device_") for key in keys):
            return False
        tool = tool if own and _TOOLS[tool][1] is _TRAINER_KEYS else "TRL"
    seen = [key for key in keys if key in _TOOLS[tool][0]]
    seen = seen or [key for key in keys if key in _TRAINER_KEYS]
    message = f"this is a configuration of {tool}, not a spec of agentc"
    settings = settings_of(root)
    notes = [f"{listed(seen, 5)} are keys of {tool}"]
    if tool not in (*_TRAINERS, "vLLM"):
        notes += _counterparts(keys)
    _report(tool, message, keys[seen[0]].span, settings, None, sink, notes)
    return True


def _report(
    tool: str,
    message: str,
    span: Span,
    settings: dict[str, str],
    method: str | None,
    sink: Sink,
    notes: Iterable[str] = (),
) -> None:
    method = method_of(settings) or method or "sft"
    advice = advice_for_kind(method)
    if tool == "vLLM":
        parts = [_server(settings)]
    elif tool in _TRAINERS:
        parts = [*draft(settings, method), *([] if advice is None else [advice])]
    else:
        parts = []
    sink.error(
        "AGC214",
        message,
        span,
        expected="a mapping with `agentc: 1`, `name`, `models`, `environments` and `stages`",
        notes=[*notes, *parts],
        fix="`agentc init` lists bundled specs to start from"
        + (
            "; these parts go into one"
            if parts
            else "; in them settings belong to stages, such "
            "as `sft: {kind: sft, model: base, data: expert, lr: 2e-5}`"
        ),
    )


_TRAINERS = ("LLaMA-Factory", "axolotl", "verl", "OpenRLHF", "TRL")


def _server(settings: dict[str, str]) -> str:
    names = {**SERVING.names, "max_model_len": (), "gpu_memory_utilization": (), "dtype": ()}
    found = {
        ours: settings[key]
        for ours, others in names.items()
        for key in (ours, *others)
        if settings.get(key)
    }
    values = ", ".join(["backend: vllm", *(f"{key}: {value}" for key, value in found.items())])
    return f"the server: `servers: {{local: {{{values}}}}}`; the model goes under `models`"


def _counterparts(keys: Iterable[str]) -> list[str]:
    """What settings of the file are called in a spec."""
    fields = {field.name for kind in KINDS for field in kind.fields}
    known = {key: [name for name in synonyms(key) if name in fields] for key in keys}
    pairs = [
        f"`{key}` is `{names[0]}`"
        for key, names in known.items()
        if names and key not in fields and key not in TOP_LEVEL
    ]
    return [f"in a spec {', '.join(pairs[:8])}"] if pairs else []

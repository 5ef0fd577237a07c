"""Names that TRL, OpenRLHF, axolotl, LLaMA-Factory, verl, vLLM and the hub's libraries give to
settings whose meaning and unit are exactly ours: a spec may use them. Those that differ are in
`agentc.diagnostics.other_tools`, with what to write instead.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StandardNames:
    """Other names by ours, for mappings that have the keys `of`."""

    of: frozenset[str]
    names: dict[str, tuple[str, ...]]


TRAINING = StandardNames(
    frozenset({"lr", "global_batch"}),
    {
        "lr": ("learning_rate",),
        "epochs": ("num_train_epochs", "num_epochs", "max_epochs"),
        "micro_batch": (
            "per_device_train_batch_size",
            "micro_train_batch_size",
            "micro_batch_size",
        ),
        "scheduler": ("lr_scheduler_type", "lr_scheduler"),
        "warmup_ratio": ("lr_warmup_ratio", "lr_warmup_steps_ratio"),
        "max_grad_norm": ("max_norm", "gradient_clipping", "grad_clip"),
        "save_every": ("save_steps",),
        "log_every": ("logging_steps",),
        "processes": ("num_processes",),
        "beta": ("pref_beta",),
    },
)
LORA = StandardNames(
    frozenset({"rank", "alpha", "targets"}),
    {
        "rank": ("r", "lora_r", "lora_rank"),
        "alpha": ("lora_alpha",),
        "dropout": ("lora_dropout",),
        "targets": ("target_modules", "lora_target_modules"),
    },
)
SAMPLING = StandardNames(
    frozenset({"temperature", "max_tokens"}),
    {
        "max_tokens": ("max_new_tokens", "max_completion_tokens"),
        "stop": ("stop_strings", "stop_sequences"),
    },
)
PPO = StandardNames(
    frozenset({"clip", "gae_lambda"}),
    {
        "clip": ("cliprange", "clip_range", "clip_ratio", "eps_clip"),
        "value_clip": ("cliprange_value",),
        "gae_lambda": ("lam", "lambd"),
        "epochs": ("num_ppo_epochs", "ppo_epochs"),
        "entropy_coef": ("entropy_coeff",),
    },
)
GRPO = StandardNames(
    frozenset({"group", "clip_low"}),
    {
        "group": ("num_generations", "n_samples_per_prompt"),
        "clip_low": ("epsilon",),
        "clip_high": ("epsilon_high",),
    },
)
SERVING = StandardNames(
    frozenset({"gpu_memory_utilization", "tensor_parallel"}),
    {
        "tensor_parallel": ("tensor_parallel_size",),
        "pipeline_parallel": ("pipeline_parallel_size",),
    },
)
ENDPOINT = StandardNames(frozenset({"url", "model", "api_key"}), {"url": ("base_url", "api_base")})
NEW_MODEL = StandardNames(
    frozenset({"hidden_size", "kv_heads"}),
    {
        "layers": ("num_hidden_layers",),
        "heads": ("num_attention_heads",),
        "kv_heads": ("num_key_value_heads",),
        "context": ("max_position_embeddings",),
        "tie_embeddings": ("tie_word_embeddings",),
    },
)
TABLES = (TRAINING, LORA, SAMPLING, PPO, GRPO, SERVING, ENDPOINT, NEW_MODEL)


DEFAULT_NAMES = {other: name for name, others in TRAINING.names.items() for other in others}
"""Those of trainings, for values under `defaults:`."""


def standard_names(allowed: Collection[str]) -> dict[str, str]:
    """Other tools' names for keys of a mapping that has these, each with ours."""
    return {
        other: name
        for table in TABLES
        if table.of <= set(allowed)
        for name, others in table.names.items()
        if name in allowed
        for other in others
        if other not in allowed
    }

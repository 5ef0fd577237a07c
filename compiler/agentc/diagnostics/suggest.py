"""The nearest valid name for what somebody wrote, by edit distance and by the field's synonyms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_SYNONYMS: dict[str, tuple[str, ...]] = {
    # What the same setting is called in the trainers and papers of the field.
    "learning_rate": ("lr",),
    "num_epochs": ("epochs",),
    "num_train_epochs": ("epochs",),
    "batch_size": ("global_batch", "micro_batch"),
    "train_batch_size": ("global_batch",),
    "per_device_train_batch_size": ("micro_batch",),
    "gradient_accumulation_steps": ("global_batch", "micro_batch"),
    "lr_scheduler_type": ("scheduler",),
    "lr_scheduler": ("scheduler",),
    "warmup": ("warmup_ratio",),
    "warmup_steps": ("warmup_ratio",),
    "max_seq_length": ("max_length",),
    "max_seq_len": ("max_length",),
    "model_max_length": ("max_length",),
    "max_new_tokens": ("max_tokens",),
    "max_completion_tokens": ("max_tokens",),
    "sampling": ("decode",),
    "generation": ("decode",),
    "num_samples": ("attempts",),
    "n_samples": ("attempts",),
    "max_steps_per_episode": ("max_turns",),
    "env": ("environment",),
    "envs": ("environments",),
    "policy": ("model",),
    "model": ("policy",),
    "dataset": ("data",),
    "ref": ("reference",),
    "ref_model": ("reference",),
    "type": ("kind",),
    "stage": ("kind",),
    "steps": ("stages",),
    "pipeline": ("stages",),
    "jobs": ("stages",),
    "variables": ("params",),
    "args": ("params",),
    "parameters": ("params",),
    "rounds": ("n",),
    "iterations": ("n",),
    "stop": ("until",),
    "early_stopping": ("until",),
    "patience": ("no_gain_for",),
    "early_stopping_patience": ("no_gain_for",),
    "min_delta": ("min_gain",),
    "early_stopping_threshold": ("min_gain",),
    "reach": ("reaches",),
    "threshold": ("reaches",),
    "resources": ("placement",),
    "num_layers": ("layers",),
    "num_hidden_layers": ("layers",),
    "num_attention_heads": ("heads",),
    "num_key_value_heads": ("kv_heads",),
    "max_position_embeddings": ("context",),
    "system": ("instruction",),
    "format": ("reply_format",),
    "version": ("agentc",),
    "gamma": ("beta",),
    "bf16": ("dtype",),
    "peft": ("lora",),
    # How models are named, and where they are from.
    "name": ("repo",),
    "model_name": ("repo",),
    "model_id": ("repo",),
    "repo_id": ("repo",),
    "hub_id": ("repo",),
    "model_name_or_path": ("repo", "path"),
    "pretrained_model_name_or_path": ("repo", "path"),
    "model_path": ("path",),
    "directory": ("path",),
    "folder": ("path",),
    "huggingface": ("hf",),
    "hugging_face": ("hf",),
    "hub": ("hf",),
    "local": ("path",),
    "r": ("rank",),
    "lora_alpha": ("alpha",),
    "lora_r": ("rank",),
    "lora_rank": ("rank",),
    "lora_dropout": ("dropout",),
    "target_modules": ("targets",),
    "lora_target_modules": ("targets",),
    "max_prompt_length": ("max_length",),
    "cutoff_len": ("max_length",),
    "loss_type": ("loss",),
    "sft_weight": ("nll_weight",),
    "rpo_alpha": ("nll_weight",),
    "n": ("attempts",),
    "num_return_sequences": ("attempts",),
    "max_rounds": ("max_turns",),
    "max_steps": ("max_turns",),
    "max_iterations": ("max_turns",),
    "num_processes": ("processes",),
    "nproc_per_node": ("processes",),
    "save_steps": ("save_every",),
    "save_strategy": ("save_every",),
    "logging_steps": ("log_every",),
    "num_gpus": ("gpus",),
    "n_gpus": ("gpus",),
    "memory": ("mem_mb",),
    "time_limit": ("minutes",),
    "tensor_parallel_size": ("tensor_parallel",),
    "pipeline_parallel_size": ("pipeline_parallel",),
}
_MOST = 3
_COMPARISONS = 50_000
_left: ContextVar[int | None] = ContextVar("comparisons left", default=None)


@contextmanager
def bounded_suggestions() -> Iterator[None]:
    """Within it, names are compared so often at most: a spec of thousands of errors over
    thousands of names gets help with the first ones."""
    token = _left.set(_COMPARISONS)
    try:
        yield
    finally:
        _left.reset(token)


def suggestions(written: str, allowed: Iterable[str]) -> tuple[str, ...]:
    """Up to three of `allowed` that the writer may have meant, nearest first; often none."""
    left = _left.get()
    if left is not None and left <= 0:
        return ()
    names = sorted(set(allowed))
    if left is not None:
        _left.set(left - len(names))
    folded = written.strip().lower().replace("-", "_").replace(" ", "_")
    same = [name for name in names if name.lower() == folded]
    if same:
        return tuple(same[:_MOST])
    meant = [name for name in _SYNONYMS.get(folded, ()) if name in names]
    limit = _tolerance(folded)
    distances = [(distance(folded, name.lower(), limit), name) for name in names]
    near = sorted(pair for pair in distances if pair[0] <= min(limit, len(pair[1]) - 1))
    best = [name for found, name in near if found == near[0][0]]
    if meant:
        # What another program calls so is surely meant; a name one letter away may be.
        slips = best if near and near[0][0] == 1 else []
        return tuple(dict.fromkeys([*meant, *slips]))[:_MOST]
    if not best:
        best = [name for name in names if len(folded) >= 4 and _contains(folded, name)]
    return tuple(best[:_MOST])


def synonyms(written: str) -> tuple[str, ...]:
    """What agentc calls a setting that other programs call so."""
    return _SYNONYMS.get(written.strip().lower().replace("-", "_"), ())


def did_you_mean(written: str, allowed: Iterable[str]) -> str | None:
    """The help line for a wrong name, or None when nothing is near."""
    return offer(suggestions(written, allowed))


def offer(names: Iterable[str]) -> str | None:
    """ "did you mean `a` or `b`?", or None for no names."""
    quoted = [f"`{name}`" for name in names]
    return f"did you mean {' or '.join(quoted)}?" if quoted else None


def listed(names: Iterable[str], most: int = 12) -> str:
    """Names for a message: "`a`, `b` and 3 more"."""
    quoted = [f"`{name}`" for name in names]
    if len(quoted) > most:
        return f"{', '.join(quoted[:most])} and {len(quoted) - most} more"
    return ", ".join(quoted)


def distance(left: str, right: str, limit: int) -> int:
    """Edits (insert, delete, replace, swap neighbours) that make `left` of `right`.

    The optimal string alignment distance; gives up with `limit + 1` once it is exceeded.
    """
    if abs(len(left) - len(right)) > limit:
        return limit + 1
    before_last: list[int] = []
    last = list(range(len(right) + 1))
    for row, char in enumerate(left, 1):
        now = [row]
        for column, other in enumerate(right, 1):
            cost = min(last[column] + 1, now[-1] + 1, last[column - 1] + (char != other))
            if row > 1 and column > 1 and char == right[column - 2] and left[row - 2] == other:
                cost = min(cost, before_last[column - 2] + 1)
            now.append(cost)
        if min(now) > limit:
            return limit + 1
        before_last, last = last, now
    return min(last[-1], limit + 1)


def _tolerance(word: str) -> int:
    if len(word) <= 4:
        return 1
    return 2 if len(word) <= 8 else 3


def _contains(written: str, name: str) -> bool:
    if len(name) >= 4 and (written in name or name in written):
        return True
    # `scienceworld` for `sciworld`, `temp_ratio` for `temperature_ratio`: letters left out.
    shorter, longer = sorted((written, name.lower()), key=len)
    return len(shorter) >= 6 and shorter[0] == longer[0] and _is_subsequence(shorter, longer)


def _is_subsequence(shorter: str, longer: str) -> bool:
    letters = iter(longer)
    return all(letter in letters for letter in shorter)

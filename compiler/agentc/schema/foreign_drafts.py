"""What a configuration of another trainer says, as parts of a spec: the model, and the stage that
trains it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from agentc.kinds import Kind, kind_named
from agentc.schema.standard_names import LORA, standard_names
from agentc.source import tree as nodes

_MODELS = (
    "model_name_or_path", "base_model", "pretrain", "actor_rollout_ref.model.path", "model",
    "actor.model_path",
)  # fmt: skip
_LENGTHS = ("max_length", "cutoff_len", "sequence_len", "max_seq_length", "max_len")
_METHODS = ("stage", "rl", "algorithm.adv_estimator", "advantage_estimator", "trainer_type")
_SETTINGS = ("lr", "epochs", "micro_batch", "scheduler", "warmup_ratio", "weight_decay",
             "max_grad_norm", "beta", "gradient_checkpointing", "max_steps")  # fmt: skip
_OPTION = re.compile(r"(?<!\S)(?:--([a-z][a-z0-9_.-]*)|\+*([a-z][a-z0-9_]*(?:\.[a-z0-9_]+)+)=)")
_PLAIN = re.compile(r"[\w./+-]+")


def settings_of(root: nodes.Mapping, before: str = "") -> dict[str, str]:
    """The values of a configuration by dotted key."""
    found: dict[str, str] = {}
    for entry in root.entries:
        name = f"{before}{entry.key.text.replace('-', '_')}"
        if isinstance(entry.value, nodes.Mapping):
            found |= settings_of(entry.value, f"{name}.")
        elif isinstance(entry.value, nodes.Scalar):
            found[name] = entry.value.text
    return found


def options_of(command: str) -> dict[str, str]:
    """The options of a command line: `--beta 0.1`, `--bf16`, `data.train_files=x`."""
    found: dict[str, str] = {}
    text = command.replace("\\\n", " ")
    for match in _OPTION.finditer(text):
        rest = text[match.end() :].lstrip(" =") if match[1] else text[match.end() :]
        value = "" if rest.startswith("-") else (rest.split() or [""])[0]
        found[(match[1] or match[2]).replace("-", "_")] = value.strip("'\"")
    return found


def method_of(settings: Mapping[str, str]) -> str | None:
    """What the settings say of the method: `sft`, `dpo`, `grpo`."""
    return next((settings[key] for key in _METHODS if settings.get(key)), None)


def draft(settings: Mapping[str, str], method: str) -> Iterator[str]:
    """Notes with the model and the training stage of a spec, as far as the settings say them."""
    model = next((settings[key] for key in _MODELS if settings.get(key)), None)
    if model is not None and _PLAIN.fullmatch(model):
        yield f"the model: `models: {{base: {model}}}`"
    kind = kind_named(method.lower())
    if kind is not None and "global_batch" in {field.name for field in kind.fields}:
        more = (
            "; `global_batch` is for one GPU" if "gradient_accumulation_steps" in settings else ""
        )
        yield f"the training: `stages: {{{kind.name}: {{{_stage(kind, settings)}}}}}`{more}"


def _stage(kind: Kind, settings: Mapping[str, str]) -> str:
    names = [field.name for field in kind.fields]
    ours = standard_names(names)
    found = {ours.get(key, key): value for key, value in settings.items()}
    values = {"kind": kind.name, "model": "base", "data": "DATA"}
    values |= {name: found[name] for name in _SETTINGS if name in names and _is_value(found, name)}
    length = next((settings[key] for key in _LENGTHS if _is_value(settings, key)), None)
    if length is not None:
        values["max_length"] = length
    batch = _global_batch(settings, found)
    if batch is not None:
        values["global_batch"] = batch
    rank = next((settings[key] for key in LORA.names["rank"] if _is_value(settings, key)), None)
    if rank is not None:
        more = f", alpha: {settings['lora_alpha']}" if _is_value(settings, "lora_alpha") else ""
        values["lora"] = f"{{rank: {rank}{more}}}"
    return ", ".join(f"{name}: {value}" for name, value in values.items())


def _is_value(settings: Mapping[str, str], name: str) -> bool:
    return _PLAIN.fullmatch(settings.get(name, "")) is not None


def _global_batch(settings: Mapping[str, str], ours: Mapping[str, str]) -> str | None:
    """The examples of a step on one device, which several multiply."""
    micro, steps = ours.get("micro_batch", ""), settings.get("gradient_accumulation_steps", "")
    if settings.get("train_batch_size", "").isdigit():
        return settings["train_batch_size"]
    return str(int(micro) * int(steps)) if micro.isdigit() and steps.isdigit() else None

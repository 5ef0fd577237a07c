"""Checkpoints in and out of XTuner: the files of transformers 5 for transformers 4.48, and XTuner's
weights as a checkpoint of agentc.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentc_backends.data.chat.rows import Side
from agentc_backends.data.models.checkpoint import companion_files
from agentc_backends.data.models.scored_rows import ScoredRows, write_scored_rows
from agentc_backends.trainers.common.checkpoints import save_as, save_dtype_of
from agentc_backends.trainers.common.scoring import ScoringSample, chosen_log_probs, score_rows

_SMALL = 1_000_000_000
"""The number of weights up to which a model scores its rows on a CPU, in seconds to a minute."""


def into_transformers_4(source: Path, target: Path) -> None:
    """Fill `target` with a view of the checkpoint that transformers 4.48 can load: weights are
    links; the tokenizer is the same tokenizer.json under a class that version knows.

    XTuner always trusts remote code, so the view has none and refers to none.
    """
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for path in sorted(source.iterdir()):
        if path.suffix == ".safetensors":
            (target / path.name).symlink_to(path.resolve())
        elif path.is_file() and path.suffix != ".py":
            shutil.copyfile(path, target / path.name)
    _write(target / "config.json", older_config(_read(target / "config.json")))
    settings = _read(target / "tokenizer_config.json")
    template = target / "chat_template.jinja"
    text = template.read_text(encoding="utf-8") if template.exists() else None
    _write(target / "tokenizer_config.json", older_tokenizer(settings, text))


def older_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """A model configuration as transformers 4 spells it."""
    old = dict(config)
    old.pop("auto_map", None)
    if "dtype" in old:
        old["torch_dtype"] = old.pop("dtype")
    rope = old.pop("rope_parameters", None)
    if rope:
        rope = dict(rope)
        old["rope_theta"] = rope.pop("rope_theta", old.get("rope_theta", 10000.0))
        if rope.get("rope_type", "default") != "default":
            old["rope_scaling"] = rope
    return old


def older_tokenizer(settings: Mapping[str, Any], template: str | None) -> dict[str, Any]:
    """A tokenizer's settings as transformers 4 spells them; `template` is its chat template."""
    old = dict(settings)
    for name in ("backend", "auto_map"):
        old.pop(name, None)
    # This class uses tokenizer.json as it is: others of 4.48 may change it.
    old["tokenizer_class"] = "PreTrainedTokenizerFast"
    if template is not None:
        old["chat_template"] = template
    # transformers 5 keeps further special tokens in a list; its mapping form is unknown to 4.48.
    if isinstance(old.get("extra_special_tokens"), list):
        old["additional_special_tokens"] = old.pop("extra_special_tokens")
    return old


def export(
    trained: Path,
    model: Path,
    base: Path,
    out: Path,
    lora: Mapping[str, Any] | None,
    save_dtype: str,
    sample: ScoringSample,
) -> None:
    """Write XTuner's weights as a checkpoint into `out`: safetensors, adapters merged, with
    the configuration, tokenizer and formats of the model that training started from, and scores of
    `sample`.

    `trained` is a file `iter_N.pth`, or DeepSpeed's directory of that name; `model` the view that
    XTuner loaded, `base` the checkpoint it was made from. Raises RuntimeError when weights are
    missing or left over.
    """
    import torch
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    weights = _weights(trained)
    llm = AutoModelForCausalLM.from_pretrained(
        str(model), torch_dtype=torch.float32, use_safetensors=True, trust_remote_code=False
    )
    if lora is None:
        llm.load_state_dict(weights, strict=True)
    else:
        llm = _merged(llm, weights, lora)
    write_scored_rows(out, _scored(llm, sample))
    dtype = save_dtype_of(save_dtype, "float32")
    save_as(llm, out, dtype)
    config = _read(base / "config.json")
    config["torch_dtype" if "torch_dtype" in config else "dtype"] = dtype
    _write(out / "config.json", config)
    generation = base / "generation_config.json"
    if generation.exists():
        shutil.copyfile(generation, out / generation.name)
    for path in companion_files(base):
        shutil.copyfile(path, out / path.name)


def _scored(llm: Any, sample: ScoringSample) -> ScoredRows:
    """Rows with the model's log-probabilities, by transformers in float32; none where that would
    take long, for XTuner may have needed several GPUs for the model."""
    import torch

    device = _device_of(llm)
    if device is None:
        return ScoredRows("float32", ())

    def log_probs(side: Side) -> list[float]:
        ids = torch.tensor([side.ids], device=device)
        with torch.no_grad():
            return chosen_log_probs(llm(input_ids=ids, use_cache=False).logits[0], ids[0])

    llm.eval().to(device)
    scored = score_rows(sample, "float32", log_probs)
    llm.to("cpu")
    return scored


def _device_of(llm: Any) -> str | None:
    """A GPU that the model fits on, or the CPU for a small one."""
    import torch

    numbers = sum(parameter.numel() for parameter in llm.parameters())
    if torch.cuda.is_available() and 5 * numbers < torch.cuda.mem_get_info()[0]:
        return "cuda"
    return "cpu" if numbers <= _SMALL else None


def _weights(trained: Path) -> dict[str, Any]:
    """Tensors of the language model by name. The file is the job's own: unpickling it is safe."""
    if trained.is_dir():
        from xtuner.model.utils import guess_load_checkpoint

        state = guess_load_checkpoint(str(trained))
    else:
        import torch

        state = torch.load(trained, map_location="cpu", weights_only=False)["state_dict"]
    return {name.removeprefix("llm."): tensor.float() for name, tensor in state.items()}


def _merged(llm: Any, weights: Mapping[str, Any], lora: Mapping[str, Any]) -> Any:
    from peft import LoraConfig, get_peft_model
    from xtuner.model.utils import find_all_linear_names

    adapted = get_peft_model(
        llm,
        LoraConfig(
            r=lora["rank"],
            lora_alpha=lora["alpha"],
            lora_dropout=lora["dropout"],
            target_modules=lora["targets"] or find_all_linear_names(llm),
            bias="none",
            task_type="CAUSAL_LM",
        ),
    )
    result = adapted.load_state_dict(dict(weights), strict=False)
    missing = [name for name in result.missing_keys if "lora_" in name]
    if missing or result.unexpected_keys:
        raise RuntimeError(
            f"the adapters do not fit the model: missing {missing[:3]}, left over "
            f"{result.unexpected_keys[:3]}"
        )
    return adapted.merge_and_unload()


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return value


def _write(path: Path, value: Mapping[str, Any]) -> None:
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    temporary.replace(path)

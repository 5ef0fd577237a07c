"""Checkpoints: what OpenRLHF reads of a model, DeepSpeed's resumable ones in the job's work folder,
and the finished one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from agentc_backends.data.models.checkpoint import WEIGHT_SUFFIXES, companion_files, load_model
from agentc_backends.trainers.common.checkpoints import (
    newest_complete,
    save_as,
    save_dtype_of,
    step_of,
)

_CODE = "auto_map"
_TRAINED = "bfloat16"
"""The numeric type of the weights that OpenRLHF writes, but for adapters."""
_ADAPTER = "adapter_config.json"


def without_code(model: Path, view: Path) -> Path:
    """`view`, filled with links to a model's files, without the reference to Python code in its
    configuration: OpenRLHF always trusts remote code."""
    shutil.rmtree(view, ignore_errors=True)
    view.mkdir(parents=True)
    for path in sorted(model.iterdir()):
        target = view / path.name
        if path.name not in ("config.json", "tokenizer_config.json"):
            target.symlink_to(path.resolve())
            continue
        values = json.loads(path.read_text(encoding="utf-8"))
        values.pop(_CODE, None)
        target.write_text(json.dumps(values, indent=2), encoding="utf-8")
    return view


def publish(trained: Path, base: Path, out: Path, save_dtype: str) -> None:
    """Write the trained weights into `out` (safetensors, adapters merged), and all other files as
    they are in `base`: OpenRLHF rewrites the tokenizer and turns off the cache in the
    configuration."""
    adapted = (trained / _ADAPTER).exists()
    dtype = save_dtype_of(save_dtype, "float32" if adapted else _TRAINED)
    if adapted:
        _merge(trained, base, out, dtype)
    elif dtype != _TRAINED:
        save_as(load_model(trained), out, dtype)
    else:
        for path in sorted(trained.iterdir()):
            if path.name.endswith(WEIGHT_SUFFIXES):
                shutil.move(str(path), str(out / path.name))
    config = json.loads((base / "config.json").read_text(encoding="utf-8"))
    config.pop("torch_dtype", None)
    _write(out / "config.json", {**config, "dtype": dtype})
    for path in (*companion_files(base), base / "generation_config.json"):
        shutil.copyfile(path, out / path.name)


def _merge(adapter: Path, base: Path, out: Path, dtype: str) -> None:
    """The base model with the adapter added to its weights, added up in float32."""
    from peft import PeftModel

    model: Any = PeftModel.from_pretrained(load_model(base), str(adapter))
    save_as(model.merge_and_unload(), out, dtype)


def _write(path: Path, values: dict[str, Any]) -> None:
    path.write_text(json.dumps(values, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


FOLDER = "checkpoints"
TAG = "global_step"
"""How the folders begin that OpenRLHF saves, each named after its step."""


def keep_newest_checkpoint(work: Path) -> int:
    """Delete all checkpoints but the newest complete one, and name it in the file `latest`, where
    DeepSpeed looks: DeepSpeed writes that file without waiting for the disk. Returns its step, 0
    without one."""
    folder = work / FOLDER
    newest = newest_complete(folder, f"{TAG}*")
    for path in folder.glob(f"{TAG}*"):
        if path != newest:
            shutil.rmtree(path)
    latest = folder / "latest"
    if newest is None:
        latest.unlink(missing_ok=True)
        return 0
    latest.write_text(newest.name, encoding="utf-8")
    return step_of(newest)

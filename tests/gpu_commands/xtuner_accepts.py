"""Run by the Python of XTuner: what its loader and builders make of jobs' configuration files, up
to DeepSpeed's configuration, and the model that each would train.

python xtuner_accepts.py < JSON list of jobs     prints a JSON line for each
"""

from __future__ import annotations

import json
import sys
import tempfile
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

ROWS = 10_000


def main() -> None:
    import torch

    from agentc_backends.trainers.xtuner.on_cpu import patch_torch

    if not torch.cuda.is_available():
        patch_torch(torch)
    from meta_model import meta_model
    from transformers import AutoModelForCausalLM

    # Builders look up the class's method by its name.
    setattr(AutoModelForCausalLM, "from_pretrained", staticmethod(partial(_loaded, meta_model)))  # noqa: B010
    for each in json.load(sys.stdin):
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(_facts(each, Path(folder))))


def _facts(each: dict[str, Any], folder: Path) -> dict[str, Any]:
    from deepspeed.runtime import config as ds
    from meta_model import facts_of
    from mmengine.config import Config
    from xtuner.registry import BUILDER
    from xtuner.tools import train

    from agentc.program.settings import settings_from
    from agentc_backends.trainers.xtuner.config_file import MachineSettings, deepspeed, render
    from agentc_backends.trainers.xtuner.schedule import length_of
    from agentc_backends.trainers.xtuner.settings import XtunerSettings

    settings = settings_from(XtunerSettings, each["config"]["settings"])
    processes = each["processes"]
    length = length_of(settings, ROWS, processes)
    machine = MachineSettings(
        model=each["model"], rows="rows", work_dir="work", job_file="job.json", gpu=True,
        processes=processes,
    )  # fmt: skip
    (folder / "config.py").write_text(render(settings, length, machine))
    words = ["train.py", str(folder / "config.py"), "--launcher", "pytorch"]
    if settings.zero_stage is not None:
        (folder / "deepspeed.json").write_text(deepspeed(settings))
        words += ["--deepspeed", str(folder / "deepspeed.json")]
    sys.argv = words
    arguments = train.parse_args()
    config = Config.fromfile(arguments.config)
    train.register_function(config._cfg_dict)
    train.check_cfg(config, arguments)
    model = BUILDER.build(config.model)
    found = {
        **facts_of(model.llm),
        "batch": config.batch_size * config.accumulative_counts,
        "iterations": config.max_iters,
        "lr": config.optim_wrapper.optimizer.lr,
        "length": config.max_length,
        "zero": None,
    }
    if arguments.deepspeed:
        filled = json.loads(Path(arguments.deepspeed).read_text())
        filled["train_micro_batch_size_per_gpu"] = config.batch_size
        filled["gradient_accumulation_steps"] = config.accumulative_counts
        filled["gradient_clipping"] = settings.max_norm
        ds.dist = SimpleNamespace(get_rank=lambda: 0, get_world_size=lambda: processes)
        found["zero"] = ds.DeepSpeedConfig(filled).zero_optimization_stage
        found["bf16"] = filled["bf16"]["enabled"]
    return found


def _loaded(make: Any, pretrained_model_name_or_path: str, **options: Any) -> Any:
    assert options.pop("use_safetensors")
    return make(pretrained_model_name_or_path, **options)


if __name__ == "__main__":
    main()

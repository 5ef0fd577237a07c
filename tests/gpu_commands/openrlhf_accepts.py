"""Run by the Python of OpenRLHF: what its commands make of jobs' command lines, up to DeepSpeed's
configuration, and the model that each would train.

python openrlhf_accepts.py < JSON list of jobs     prints a JSON line for each
"""

from __future__ import annotations

import json
import runpy
import sys
from types import SimpleNamespace
from typing import Any


class Begun(Exception):  # noqa: N818 - not an error
    """Raised where the command would load its model; holds its strategy."""


def main() -> None:
    from agentc_backends.trainers.openrlhf.machine import prepare_machine

    prepare_machine()
    import openrlhf.utils
    import torch
    from deepspeed.runtime import config as deepspeed
    from meta_model import facts_of, meta_model
    from openrlhf.models import Actor

    stock = openrlhf.utils.get_strategy

    def begin(args: Any) -> None:
        raise Begun(stock(args))

    setattr(openrlhf.utils, "get_strategy", begin)  # noqa: B010 - mypy
    for each in json.load(sys.stdin):
        strategy = _strategy(each)
        args = strategy.args
        # As on the number of processes that the job has.
        deepspeed.dist = SimpleNamespace(
            get_rank=lambda: 0, get_world_size=lambda each=each: each["processes"]
        )
        shared = deepspeed.DeepSpeedConfig(strategy.get_ds_train_config())
        dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}[args.ds.param_dtype]
        model = meta_model(
            each["model"], dtype=dtype, attn_implementation=args.ds.attn_implementation
        )
        actor = Actor(model)
        if args.model.gradient_checkpointing_enable:
            actor.gradient_checkpointing_enable({"use_reentrant": False})
        facts = {
            **facts_of(model),
            "batch": shared.train_micro_batch_size_per_gpu * shared.gradient_accumulation_steps,
            "bf16": args.ds.param_dtype == "bf16",
            "lr": args.adam.lr,
            "zero": shared.zero_optimization_stage,
        }
        print(json.dumps(facts))


def _strategy(each: dict[str, Any]) -> Any:
    """What the command makes of its flags: its parser's values stand in `args`."""
    module = f"openrlhf.cli.train_{each['backend'].partition('.')[2]}"
    flags = ["--model.model_name_or_path", each["model"], "--ckpt.output_dir", "/nowhere"]
    sys.argv = [module, *each["config"]["flags"], *flags]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except Begun as begun:
        return begun.args[0]
    raise AssertionError("the command did not begin")


if __name__ == "__main__":
    main()

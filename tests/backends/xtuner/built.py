"""Run by XTuner's own Python: what its loader, builders and argument parser make of a job's files.

python built.py WITH_GPUS CONFIG ARGV...     prints JSON; ARGV is what its training program is given
                                             beside CONFIG; of WITH_GPUS the classes are loaded
"""

from __future__ import annotations

import json
import sys
from typing import Any


def main() -> None:
    import torch

    from agentc_backends.trainers.xtuner.on_cpu import patch_torch

    if not torch.cuda.is_available():
        patch_torch(torch)
    from mmengine.config import Config
    from mmengine.optim import build_optim_wrapper
    from mmengine.registry import PARAM_SCHEDULERS
    from xtuner.registry import BUILDER
    from xtuner.tools import train

    with_gpus = Config.fromfile(sys.argv[1])
    sys.argv = ["train.py", *sys.argv[2:]]
    arguments = train.parse_args()
    config = Config.fromfile(arguments.config)
    train.register_function(config._cfg_dict)
    train.check_cfg(config, arguments)
    dataset = BUILDER.build(config.train_dataloader.dataset)
    model = BUILDER.build(config.model)
    wrapper = build_optim_wrapper(model, config.optim_wrapper)
    schedulers = [
        PARAM_SCHEDULERS.build(dict(one), default_args={"optimizer": wrapper})
        for one in config.param_scheduler or []
    ]
    rates = []
    for _ in range(config.max_iters):
        rates.append(wrapper.get_lr()["lr"][0])
        for scheduler in schedulers:
            scheduler.step()
    print(
        json.dumps(
            {
                "arguments": {k: v for k, v in vars(arguments).items() if k != "config"},
                "rows": [
                    {"input_ids": row["input_ids"], "labels": row["labels"]} for row in dataset
                ],
                "loss": _loss(model, config, dataset[0]),
                "lr": rates[config.accumulative_counts - 1 :: config.accumulative_counts],
                "optimizer": _optimizer(wrapper),
                "dtypes": sorted({str(p.dtype) for p in model.parameters()}),
                "with_gpus": [
                    with_gpus.optim_wrapper.type.__name__,
                    with_gpus.optim_wrapper.dtype,
                    with_gpus.env_cfg.dist_cfg.backend,
                ],
                "trained": sorted(n for n, p in model.named_parameters() if p.requires_grad),
            }
        )
    )


def _loss(model: Any, config: Any, row: Any) -> dict[str, float]:
    """XTuner's loss of a row, and the mean negative log-likelihood of its labelled tokens."""
    import torch
    from xtuner.dataset.collate_fns import default_collate_fn

    batch = default_collate_fn([row])["data"]
    model.eval()
    with torch.no_grad():
        theirs = model(batch, mode="loss")["loss"].item()
        logits = model(batch, mode="tensor").logits[0, :-1].double()
    labels = batch["labels"][0, 1:]
    chosen = labels != -100
    scores = torch.log_softmax(logits, dim=-1)[chosen]
    ours = -scores.gather(1, labels[chosen].unsqueeze(1)).mean().item()
    return {"xtuner": theirs, "labelled": ours}


def _optimizer(wrapper: Any) -> dict[str, Any]:
    optimizer = wrapper.optimizer
    group = optimizer.param_groups[0]
    return {
        "wrapper": type(wrapper).__name__,
        "class": type(optimizer).__name__,
        "betas": list(group["betas"]),
        "weight_decay": group["weight_decay"],
        "eps": group["eps"],
        "clip": wrapper.clip_grad_kwargs,
        "accumulation": wrapper._accumulative_counts,
    }


if __name__ == "__main__":
    main()

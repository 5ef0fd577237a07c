"""Writes the configuration file that XTuner trains from: mmengine's Python format, in the order of
XTuner's own configurations. It is kept in the job's logs, to be read and rerun by hand.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from agentc_backends.trainers.xtuner.schedule import Length, schedulers
from agentc_backends.trainers.xtuner.settings import XtunerSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSettings:
    """What only the machine decides. `job_file` is the path of job.json, for progress."""

    model: str
    rows: str
    work_dir: str
    job_file: str
    gpu: bool
    processes: int


def render(settings: XtunerSettings, length: Length, machine: MachineSettings) -> str:
    """The text of the configuration file."""
    parts = (
        _imports(settings, machine, length),
        _values(settings, length, machine),
        _model(settings, machine),
        _data(),
        _optimisation(settings, length, machine),
        _runtime(machine),
    )
    return "\n".join(parts)


def deepspeed(settings: XtunerSettings) -> str:
    """The text of DeepSpeed's configuration for `--deepspeed`. XTuner fills in every "auto"."""
    return (
        json.dumps(
            {
                "gradient_accumulation_steps": "auto",
                "train_micro_batch_size_per_gpu": "auto",
                "gradient_clipping": "auto",
                "zero_allow_untested_optimizer": True,
                "zero_force_ds_cpu_optimizer": False,
                "zero_optimization": {
                    "stage": settings.zero_stage,
                    "overlap_comm": True,
                    **_offloaded(settings),
                },
                "fp16": {"enabled": False},
                "bf16": {"enabled": settings.dtype == "bfloat16"},
            },
            indent=2,
        )
        + "\n"
    )


def _offloaded(settings: XtunerSettings) -> dict[str, Any]:
    """Weights can move where they are divided, which is in stage 3."""
    if not settings.offload:
        return {}
    host = {"device": "cpu"}
    weights = {"offload_param": host} if settings.zero_stage == 3 else {}
    return {"offload_optimizer": host, **weights}


def wrapper(settings: XtunerSettings, gpu: bool) -> str:
    """The class that drives the optimiser. DeepSpeed replaces it by its own."""
    if settings.dtype == "float32" or settings.zero_stage is not None:
        return "OptimWrapper"
    # AmpOptimWrapper refuses to work without a GPU.
    return "AmpOptimWrapper" if gpu else "CpuAmpOptimWrapper"


def _imports(settings: XtunerSettings, machine: MachineSettings, length: Length) -> str:
    used = wrapper(settings, machine.gpu)
    from_mmengine = sorted({name for name, _ in schedulers(settings, length.steps)})
    if used != "CpuAmpOptimWrapper":
        from_mmengine = [used, *from_mmengine]
    lines = [
        "# What `xtuner train` ran on in this job; paths lead into the job's work folder.",
        "import torch",
        "from datasets import load_from_disk",
        "from mmengine.hooks import DistSamplerSeedHook, IterTimerHook, LoggerHook",
        "from mmengine.hooks import ParamSchedulerHook",
    ]
    if from_mmengine:
        lines.append(f"from mmengine.optim import {', '.join(from_mmengine)}")
    if settings.lora is not None:
        lines.append("from peft import LoraConfig")
    lines += [
        "from torch.optim import AdamW",
        "from transformers import AutoModelForCausalLM, AutoTokenizer",
        "from xtuner.dataset import process_hf_dataset",
        "from xtuner.dataset.collate_fns import default_collate_fn",
        "from xtuner.engine.runner import TrainLoop",
        "from xtuner.model import SupervisedFinetune",
        "",
    ]
    if used == "CpuAmpOptimWrapper":
        lines.append("from agentc_backends.trainers.xtuner.hooks import CpuAmpOptimWrapper")
    lines += [
        "from agentc_backends.trainers.xtuner.schedule import RowOrder",
        "from agentc_backends.trainers.xtuner.hooks import Reporter",
        "from agentc_backends.trainers.xtuner.hooks import CheckpointInTime",
        "",
    ]
    return "\n".join(lines)


def _values(settings: XtunerSettings, length: Length, machine: MachineSettings) -> str:
    decided = f"max_steps {settings.max_steps}"
    if settings.max_steps is None:
        decided = f"{settings.max_epochs:g} epochs"
    names = ("max_length", "pack_to_max_length", "batch_size", "accumulative_counts")
    later = ("lr", "betas", "weight_decay", "max_norm", "use_activation_checkpointing", "seed")
    of = f"of {machine.processes} processes" if machine.processes > 1 else "of one process"
    return "\n".join(
        [
            *_heading(1, "Settings"),
            f"pretrained_model_name_or_path = {machine.model!r}",
            f"rows_path = {machine.rows!r}",
            f"work_dir = {machine.work_dir!r}",
            *(f"{name} = {getattr(settings, name)!r}" for name in names),
            f"# {length.steps} optimiser steps ({decided}), in iterations {of}:",
            f"max_iters = {length.iterations}",
            *(f"{name} = {getattr(settings, name)!r}" for name in later),
            f"save_interval = {length.save_interval}",
            f"log_interval = {length.log_interval}",
            "",
        ]
    )


def _model(settings: XtunerSettings, machine: MachineSettings) -> str:
    lines = [
        *_heading(2, "Model & Tokenizer"),
        "tokenizer = dict(",
        "    type=AutoTokenizer.from_pretrained,",
        "    pretrained_model_name_or_path=pretrained_model_name_or_path,",
        "    padding_side='right',",
        "    trust_remote_code=False,",
        ")",
        "model = dict(",
        "    type=SupervisedFinetune,",
        "    use_varlen_attn=False,",
        "    use_activation_checkpointing=use_activation_checkpointing,",
        "    llm=dict(",
        "        type=AutoModelForCausalLM.from_pretrained,",
        "        pretrained_model_name_or_path=pretrained_model_name_or_path,",
        "        torch_dtype=torch.float32,",
        f"        attn_implementation={settings.attention!r},",
        "        use_safetensors=True,",
        "        trust_remote_code=False,",
        "    ),",
    ]
    lora = settings.lora
    if lora is not None:
        lines += [
            "    lora=dict(",
            "        type=LoraConfig,",
            f"        r={lora['rank']},",
            f"        lora_alpha={lora['alpha']},",
            f"        lora_dropout={lora['dropout']},",
            f"        target_modules={lora['targets'] or None!r},",
            "        bias='none',",
            "        task_type='CAUSAL_LM',",
            "    ),",
        ]
    lines.append(")")
    if not machine.gpu and machine.processes > 1:
        lines += [
            "model_wrapper_cfg = dict(type='MMDistributedDataParallel', device_ids=None)",
        ]
    return "\n".join([*lines, ""])


def _data() -> str:
    """The rows are token ids and labels already: XTuner neither templates nor tokenises them."""
    return "\n".join(
        [
            *_heading(3, "Dataset & Dataloader"),
            "train_dataloader = dict(",
            "    batch_size=batch_size,",
            "    num_workers=0,",
            "    dataset=dict(",
            "        type=process_hf_dataset,",
            "        dataset=dict(type=load_from_disk, dataset_path=rows_path),",
            "        do_dataset_tokenization=False,",
            "        max_length=max_length,",
            "        remove_unused_columns=True,",
            "        shuffle_before_pack=False,",
            "        pack_to_max_length=pack_to_max_length,",
            "        use_varlen_attn=False,",
            "        map_num_proc=1,",
            "    ),",
            "    sampler=dict(type=RowOrder, batch_size=batch_size, seed=seed),",
            "    collate_fn=dict(type=default_collate_fn, use_varlen_attn=False),",
            ")",
            "",
        ]
    )


def _optimisation(settings: XtunerSettings, length: Length, machine: MachineSettings) -> str:
    used = wrapper(settings, machine.gpu)
    lines = [
        *_heading(4, "Scheduler & Optimizer"),
        "optim_wrapper = dict(",
        f"    type={used},",
        "    optimizer=dict(type=AdamW, lr=lr, betas=betas, weight_decay=weight_decay),",
        # Under DeepSpeed a missing norm would mean 1.
        "    clip_grad=dict(max_norm=max_norm, error_if_nonfinite=False),"
        if settings.max_norm or settings.zero_stage is not None
        else "    clip_grad=None,",
        "    accumulative_counts=accumulative_counts,",
        *(["    loss_scale=1.0,"] if used == "AmpOptimWrapper" else []),
        *(["    dtype='bfloat16',"] if used == "AmpOptimWrapper" else []),
        ")",
    ]
    made = schedulers(settings, length.steps)
    lines.append("param_scheduler = [" if made else "param_scheduler = None")
    for name, arguments in made:
        inside = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
        lines.append(f"    dict(type={name}, {inside}),")
    if made:
        lines.append("]")
    return "\n".join([*lines, "train_cfg = dict(type=TrainLoop, max_iters=max_iters)", ""])


def _runtime(machine: MachineSettings) -> str:
    backend = "nccl" if machine.gpu else "gloo"
    return "\n".join(
        [
            *_heading(5, "Runtime"),
            "custom_hooks = [",
            "    dict(",
            "        type=Reporter,",
            f"        job_file={machine.job_file!r},",
            "        accumulation=accumulative_counts,",
            "        log_interval=log_interval,",
            "    ),",
            "]",
            "default_hooks = dict(",
            "    timer=dict(type=IterTimerHook),",
            "    logger=dict(type=LoggerHook, log_metric_by_epoch=False, interval=log_interval),",
            "    param_scheduler=dict(type=ParamSchedulerHook),",
            "    checkpoint=dict(",
            "        type=CheckpointInTime,",
            f"        job_file={machine.job_file!r},",
            "        accumulation=accumulative_counts,",
            "        by_epoch=False,",
            "        interval=save_interval,",
            "        max_keep_ckpts=2,",
            "    ),",
            "    sampler_seed=dict(type=DistSamplerSeedHook),",
            ")",
            "env_cfg = dict(",
            "    cudnn_benchmark=False,",
            "    mp_cfg=dict(mp_start_method='fork', opencv_num_threads=0),",
            f"    dist_cfg=dict(backend={backend!r}),",
            ")",
            "visualizer = None",
            "log_level = 'INFO'",
            "load_from = None",
            "resume = False",
            "randomness = dict(seed=seed, deterministic=False)",
            "log_processor = dict(by_epoch=False)",
            "",
        ]
    )


def _heading(number: int, title: str) -> list[str]:
    return [f"# --- Part {number}: {title} ---"]

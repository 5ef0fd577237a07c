"""Settings of `xtuner.sft`: its options, and what its program reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentc.program.settings import setting


# fmt: off
@dataclass(frozen=True, slots=True, kw_only=True)
class XtunerOptions:
    """Options of the backend."""

    zero_stage: int | None = setting(
        "Stage of DeepSpeed's ZeRO (`xtuner train --deepspeed`); null: no DeepSpeed. "
        "`sharding: optimizer` is stage 2, `full` stage 3; without it this decides.", None,
        schema={"type": ["integer", "null"], "enum": [1, 2, 3, None]})
# fmt: on


@dataclass(frozen=True, slots=True, kw_only=True)
class XtunerSettings:
    """What the configuration file is written from, under the names that XTuner's own
    configurations use."""

    max_length: int
    pack_to_max_length: bool
    batch_size: int
    accumulative_counts: int
    max_epochs: float
    max_steps: int | None
    lr: float
    betas: tuple[float, ...]
    weight_decay: float
    max_norm: float
    scheduler: str
    warmup_ratio: float
    dtype: str
    use_activation_checkpointing: bool
    seed: int
    save_steps: int | None
    log_steps: int
    lora: Mapping[str, Any] | None
    zero_stage: int | None
    attention: str
    offload: bool
    save_dtype: str

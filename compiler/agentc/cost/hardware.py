"""Machines: peak arithmetic and memory bandwidth of GPUs and CPU cores, from data sheets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentc.cost.quantities import Quantity, prior


@dataclass(frozen=True, slots=True)
class Gpu:
    """Dense peaks in TFLOP/s (`half`: bf16 or fp16 with fp32 accumulation; `single`: fp32 without
    tensor cores), memory bandwidth in GB/s and size in GB."""

    half: float
    single: float
    bandwidth: float
    memory: float


GPUS: dict[str, Gpu] = {
    "t4": Gpu(65, 8.1, 320, 16),
    "v100": Gpu(125, 15.7, 900, 32),
    "rtx3090": Gpu(71, 35.6, 936, 24),
    "rtx4090": Gpu(165, 82.6, 1008, 24),
    "a10": Gpu(125, 31.2, 600, 24),
    "a6000": Gpu(155, 38.7, 768, 48),
    "l4": Gpu(121, 30.3, 300, 24),
    "l40s": Gpu(362, 91.6, 864, 48),
    "a100": Gpu(312, 19.5, 2039, 80),
    "h100": Gpu(989, 67, 3350, 80),
    "h200": Gpu(989, 67, 4800, 141),
    "b200": Gpu(2250, 80, 7700, 180),
}
"""Peaks as NVIDIA's data sheets give them, without sparsity; the SXM form where there are two."""

DEFAULT_GPU = "a100"
"""What a GPU is taken for when nobody says which: the one that most papers of the field used."""

CORE_FLOPS = 80e9
"""Peak of a CPU core in fp32: 2.5 GHz x 2 fused multiply-adds x 8 lanes (AVX2)."""
CORE_BANDWIDTH = 10e9
"""Memory bandwidth of a core in bytes a second, and the most of a socket."""
SOCKET_BANDWIDTH = 100e9


@dataclass(frozen=True, slots=True)
class ComputeProfile:
    """What a job computes on: peak FLOP/s by precision and bytes a second, over all its devices.

    `kind` is `cpu` or a GPU's name; observations on another kind count less.
    """

    kind: str
    count: int
    half: float
    single: float
    bandwidth: float

    @property
    def is_gpu(self) -> bool:
        """Whether it is a GPU."""
        return self.kind != "cpu"

    def training_rate(self) -> Quantity:
        """Floating-point operations a second of a training in fp32."""
        share = prior("gpu_training_share" if self.is_gpu else "cpu_training_share")
        return share.times(self.single)


def cpu_machine(cores: int) -> ComputeProfile:
    """So many cores of one machine."""
    peak = CORE_FLOPS * cores
    return ComputeProfile("cpu", cores, peak, peak, min(CORE_BANDWIDTH * cores, SOCKET_BANDWIDTH))


def gpu_machine(name: str, count: int) -> ComputeProfile:
    """So many GPUs of one type; an unknown name is taken for DEFAULT_GPU."""
    gpu = GPUS.get(name, GPUS[DEFAULT_GPU])
    return ComputeProfile(
        name, count, gpu.half * 1e12 * count, gpu.single * 1e12 * count, gpu.bandwidth * 1e9 * count
    )


def machine_of(hardware: Mapping[str, Any], cpus: int, gpus: int) -> ComputeProfile:
    """The machine of a manifest's `hardware`, of which a job had so many cores and GPUs."""
    present = hardware.get("gpus")
    if gpus and isinstance(present, list) and present:
        return gpu_machine(gpu_named(str(present[0])) or "gpu", gpus)
    return cpu_machine(cpus)


def gpu_named(product: str) -> str | None:
    """The entry of GPUS for a product name such as `NVIDIA A100-SXM4-80GB`, or None."""
    words = product.lower().replace("geforce ", "")
    found = [
        name
        for name in GPUS
        if re.search(rf"(?<![a-z0-9]){name.replace('rtx', 'rtx[ -]*')}(?![0-9])", words)
    ]
    return max(found, key=len, default=None)

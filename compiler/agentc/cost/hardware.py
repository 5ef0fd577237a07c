"""Machines: peak arithmetic and memory bandwidth of GPUs and CPU cores, from data sheets, and what
calibration has measured on this one.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from agentc.cost.quantities import Quantity, prior
from agentc.runtime.machine.hardware import MachineProbe
from agentc.runtime.store.layout import StoreLayout

PROGRAM = "agentc_backends.software.calibrate"
TRAINER_SHARE = 0.7
"""What a trainer makes of the bare step that is measured: padding, batches, logging."""
REFERENCE = {"import_s": 3.7, "one_s": 0.0016, "many_s": 0.0036, "interpreter_s": 0.0017}
"""The same measures on the machine whose runs the prior's other constants were set by (2 cores of
an Intel Xeon, 2026): what is started, decoded and interpreted takes so many times the prior."""
_LEAST, _MOST = 0.1, 10.0
"""A measure that is further off than that is no measure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """`rates`: floating-point operations a second of one core in training, by width of the model;
    `overhead`: seconds of a step for each block and the head. `starting`, `decoding` and
    `interpreting` are times by those of the reference machine."""

    rates: Mapping[int, float]
    overhead: float
    starting: float
    decoding: float
    interpreting: float

    def rate(self, width: float) -> float:
        """Operations a second of one core for a model of a width: between those measured by its
        logarithm, beyond them the nearest."""
        known = sorted(self.rates.items())
        if width <= known[0][0]:
            return known[0][1]
        for (low, slow), (high, fast) in pairwise(known):
            if width <= high:
                share = math.log(width / low) / math.log(high / low)
                return slow + share * (fast - slow)
        return known[-1][1]


def read_calibration(store: StoreLayout, lock: str) -> Calibration | None:
    """What the store knows of this machine with this software, or None."""
    try:
        kept = json.loads(calibration_file(store, lock).read_text(encoding="utf-8"))
        return calibration_of(kept["measured"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def calibration_file(store: StoreLayout, lock: str) -> Path:
    """Where it is kept: by processor, cores, and the lock's digest of the software."""
    text = json.dumps([machine_words(), lock], sort_keys=True)
    name = hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]
    return store.root / "calibration" / f"{name}.json"


def machine_words() -> dict[str, Any]:
    """What tells one machine from another: its processor and the cores that may be used."""
    told = MachineProbe().describe()
    return {name: told.get(name) for name in ("cpu", "cpus", "cores")}


def calibration_of(measured: Mapping[str, Any]) -> Calibration:
    """What PROGRAM measured. Raises ValueError for what cannot be."""
    try:
        found = _read(measured)
    except (KeyError, TypeError, AttributeError, ArithmeticError, IndexError) as error:
        raise ValueError(f"not the measures of a machine: {error}") from error
    times = (found.starting, found.decoding, found.interpreting)
    if not all(_LEAST < each < _MOST for each in times) or min(found.rates.values()) <= 0:
        raise ValueError("no machine is like that")
    return found


def _read(measured: Mapping[str, Any]) -> Calibration:
    rates, overheads = {}, []
    for width, step in measured["training"].items():
        weights, layers, tokens = step["weights"], step["layers"], step["tokens"]
        # As docs/cost.md counts: six operations a weight and token, and what attention takes.
        operations = 6 * tokens * (weights + layers * int(width) * step["length"])
        rates[int(width)] = TRAINER_SHARE * operations / (step["step_s"] - step["overhead_s"])
        overheads.append(step["overhead_s"] / (layers + 1))
    decoding = measured["decoding"]
    compared = {**measured, **decoding}
    ratio = {name: float(compared[name]) / usual for name, usual in REFERENCE.items()}
    return Calibration(
        rates=rates,
        overhead=overheads[0],
        starting=ratio["import_s"],
        decoding=math.sqrt(ratio["one_s"] * ratio["many_s"]),
        interpreting=ratio["interpreter_s"],
    )


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


_MEASURED = 1.5
"""The band of a rate that was measured: what differs from model to model."""
_TRAINERS_S = 0.001
_SCALED = {
    "torch_start": "starting",
    "server_start": "starting",
    "environment_start": "interpreting",
    "light_job": "interpreting",
    "light_row": "interpreting",
    "environment_turn": "interpreting",
    "expert_turn": "interpreting",
    "decode_step": "decoding",
    "decode_block": "decoding",
    "decode_sequence": "decoding",
}
"""Which measure of a calibration a constant of the prior goes with."""


@dataclass(frozen=True, slots=True)
class ComputeProfile:
    """What a job computes on: peak FLOP/s by precision and bytes a second, over all its devices.

    `kind` is `cpu` or a GPU's name; observations on another kind count less. `calibration` is what
    cores of this machine were measured to do.
    """

    kind: str
    count: int
    half: float
    single: float
    bandwidth: float
    calibration: Calibration | None = None

    @property
    def is_gpu(self) -> bool:
        """Whether it is a GPU."""
        return self.kind != "cpu"

    def calibrated(self, calibration: Calibration | None) -> ComputeProfile:
        """The same machine, measured: of GPUs nothing was."""
        return self if self.is_gpu else replace(self, calibration=calibration)

    def learning(self, width: float) -> Quantity:
        """Floating-point operations a second that a training of a model of such a width gets."""
        if self.calibration is not None:
            return Quantity.between(self.calibration.rate(width) * self.count, _MEASURED)
        share = prior("gpu_training_share" if self.is_gpu else "cpu_training_share")
        return share.times(self.single)

    def taking(self, name: str) -> Quantity:
        """A constant of the prior that is a time on a processor, as this machine was measured."""
        usual, known = prior(name), self.calibration
        if known is None:
            return usual
        if name == "step_overhead":
            # What trainers add to a bare step takes as long as interpreted code does here.
            return Quantity(known.overhead + _TRAINERS_S * known.interpreting, usual.spread)
        return usual.times(getattr(known, _SCALED[name]))


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

"""The device that a job computes on with torch: its GPU where the job requested GPUs, or an error.

Without this, a training whose torch sees no GPU would run on CPUs for days, and succeed.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from agentc.program.job import Job
from agentc.runtime.machine.hardware import GPUS_VARIABLE, VISIBLE
from agentc.runtime.software.host_requirements import (
    CudaVersion,
    cpu_build,
    driver_fault,
    driver_version,
)

if TYPE_CHECKING:
    import torch


class NoGpuError(Exception):
    """The job requested GPUs and torch sees none; the message says what torch and driver are."""


def job_device(job: Job) -> torch.device:
    """The GPU of this process, the CPU where the job has none. Raises NoGpuError."""
    import torch

    device = visible_device()
    if job.gpus and device.type == "cpu":
        raise NoGpuError(_message(job.gpus, torch.__version__, torch.version.cuda))
    return device


def visible_device() -> torch.device:
    """The GPU of this process that torch sees, else the CPU: for code behind `job_device`."""
    import torch

    if torch.cuda.is_available():
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    return torch.device("cpu")


def require_gpus(job: Job) -> None:
    """Raise NoGpuError where the job requested GPUs and torch sees none; else import nothing."""
    if job.gpus:
        job_device(job)


def _message(gpus: int, torch_version: str, cuda: str | None) -> str:
    driver, listed = driver_version(), os.environ.get(VISIBLE)
    shown = "not set" if listed is None else repr(listed)
    return (
        f"the job requests {gpus} GPU{'s' * (gpus > 1)}, and torch sees none: "
        f"torch {torch_version}, torch.version.cuda {cuda}, NVIDIA driver {driver or 'not found'}, "
        f"{VISIBLE} {shown}. {_reason(torch_version, cuda, driver)}. To run on the CPU, write "
        f"`placement: {{gpus: 0}}`, which changes no key, or set {GPUS_VARIABLE}=0"
    )


def _reason(torch_version: str, cuda: str | None, driver: str | None) -> str:
    if cuda is None:
        return cpu_build({"torch": torch_version}) or "this torch is not built for GPUs"
    major, _, minor = cuda.partition(".")
    version = CudaVersion(int(major), int(minor or 0)) if major.isdigit() else None
    fault = driver_fault(version, driver, os.environ)
    if fault is not None:
        return fault
    return f"`nvidia-smi -L` lists the GPUs of this machine; compare {VISIBLE} with it"

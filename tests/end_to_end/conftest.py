"""End-to-end runs: the quickstart itself, made small, with its real servers and trainers."""

from __future__ import annotations

import fcntl
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
    """The software stacks that `make software` builds; they are shared, never built by
    a test."""
    folder = Path(os.environ.get("AGENTC_SOFTWARE", repository / ".agentc" / "software"))
    if len(list(folder.glob("*/bin/python"))) < 2:
        pytest.skip(f"no software stacks in {folder}; `make software` builds them")
    os.environ["AGENTC_SOFTWARE"] = str(folder)


@pytest.fixture(scope="session")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> Smoke:
    """ETO, real models, servers and trainers, on few tasks and steps.

    It is run once for all workers, by the first that asks; nobody writes into its store.
    """
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # each worker has a folder of its own in it
    folder = folder / "smoke"
    folder.mkdir(exist_ok=True)
    took = folder / "seconds"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not took.exists():
            size = Size(
                expert_tasks=24, sft_steps=6, dpo_steps=3, explored_tasks=12, evaluated_tasks=8,
                exploring=8, rounds=2,
            )  # fmt: skip
            spec = write_reduced(folder / "smoke.yaml", size)
            began = time.monotonic()
            agentc("run", spec, "--store", folder / "store", "--plain")
            took.write_text(str(time.monotonic() - began), encoding="utf-8")
    return Smoke(folder / "smoke.yaml", folder / "store", float(took.read_text(encoding="utf-8")))

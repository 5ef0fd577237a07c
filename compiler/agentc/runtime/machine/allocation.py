"""What a job got of its machine: memory by control groups, and GPUs, memory, time and nodes next
to what was requested, checked before its work.

A job that got less would fail hours later, or train on one GPU of four in silence. The request
comes from Snakemake (`--asked`, after the profile's say), the grant from SLURM's variables, control
groups and the devices that are visible.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from agentc.runtime.machine.slurm_nodes import allocated_nodes, show

_ROOT = Path("/sys/fs/cgroup")
_NO_LIMIT = 1 << 50
"""Groups without a limit say so with a word, or with a number beyond any machine's memory."""


def group_memory_limit() -> int | None:
    """The least limit of the group and those around it, in bytes."""
    limits = []
    for folder, root, modern in _groups():
        name = "memory.max" if modern else "memory.limit_in_bytes"
        for place in [folder, *folder.parents]:
            with suppress(OSError, ValueError):  # `max` is no number
                limits.append(int((place / name).read_text(encoding="ascii")))
            if place == root:
                break
    known = [limit for limit in limits if limit < _NO_LIMIT]
    return min(known) if known else None


def memory_kills() -> int:
    """Processes of the group that the kernel has killed for want of memory; 0 where unknown."""
    count = 0
    for folder, _, modern in _groups():
        with suppress(OSError, ValueError, IndexError):
            text = (folder / ("memory.events" if modern else "memory.oom_control")).read_text()
            words = text.split()
            count += int(words[words.index("oom_kill") + 1])
    return count


def out_of_memory(kills_before: int) -> str:
    """A sentence with cause and remedy when there were more since; else ""."""
    if memory_kills() <= kills_before:
        return ""
    limit = group_memory_limit()
    room = "" if limit is None else f" of {limit >> 20} MiB"
    return (
        f"it ran out of memory: the kernel killed a process for going over the limit{room}."
        " Raise `placement: {mem_mb: ...}` of the stage, or `mem_mb` in the profile"
    )


def _groups() -> list[tuple[Path, Path, bool]]:
    """Folders of the group with memory accounts, the root of each, whether it is version 2."""
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            found.append((_ROOT / path.lstrip("/"), _ROOT, True))
        elif "memory" in controllers.split(","):
            root = _ROOT / "memory"
            found.append((root / path.lstrip("/"), root, False))
    return found


MODE_VARIABLE = "AGENTC_PROLOGUE"
"""`warn`: say what is missing and go on."""
_SLACK_S = 120.0
"""A job starts a little after its allocation does."""
_LATE_S = 300.0
"""A job that seems to have begun so long before its wrapper is on a node with another clock."""
_LOCAL_SLACK = 0.95
"""Machines sold with 64 GiB show a little less."""

Fact = tuple[float, str]
"""An amount, and what says so."""


class NotGrantedError(Exception):
    """The job did not get what was asked for; the message names cause and remedy."""


def read_request(text: str) -> dict[str, str]:
    """`gpu=4,mem_mb=16000` as a mapping."""
    pairs = (word.partition("=") for word in text.split(",") if "=" in word)
    return {name.strip(): value.strip() for name, _, value in pairs}


def shortfalls(
    asked: Mapping[str, str],
    environ: Mapping[str, str],
    machine_gpus: Callable[[], list[str]],
    now: float | None = None,
) -> list[str]:
    """A sentence for each thing that is known to be less than was asked for."""
    found = []
    nodes = max(1, number(asked.get("nodes")) or 1)
    gpus = gpus_on_node(asked, nodes)
    if gpus:
        got = visible_gpus(environ, machine_gpus)
        if got is not None and got[0] < gpus:
            each = " on each node" if nodes > 1 else ""
            found.append("%d GPUs%s were asked for, and it sees %d (%s)" % (gpus, each, *got))
    memory = number(asked.get("mem_mb"))
    if memory:
        had = memory_limit(environ)
        least = memory if "SLURM_JOB_ID" in environ else memory * _LOCAL_SLACK
        if had is not None and had[0] < int(least):
            found.append("%d MiB of memory were asked for, and it has %d (%s)" % (memory, *had))
    minutes = number(asked.get("runtime"))
    if minutes:
        found += _too_short(minutes, environ, time.time() if now is None else now)
    if nodes > 1 and "SLURM_JOB_ID" in environ:
        there = allocated_nodes(environ)
        if there < nodes:
            found.append(f"{nodes} nodes were asked for, and it has {there}")
    return found


def clock_trouble(environ: Mapping[str, str], now: float) -> str:
    """A sentence where this node's clock and that of SLURM's controller cannot both be right."""
    span = _allocation(environ)
    if span is None or span[0] is None or -_SLACK_S / 4 <= now - span[0] <= _LATE_S:
        return ""
    late = now - span[0]
    return (
        "the clock of {} and that of SLURM's controller disagree: by this one the job began {} "
        "({}). Time limits are the controller's, so the job may stop too early or be cut off "
        "before it has saved its work; let the node's clock be set (`chronyc tracking`, "
        "`timedatectl`)".format(
            os.uname().nodename,
            f"{int(late // 60)} minutes ago" if late > 0 else "%d s from now" % -late,
            span[2],
        )
    )


def assert_granted(
    asked: Mapping[str, str],
    environ: Mapping[str, str],
    machine_gpus: Callable[[], list[str]],
    warn: Callable[[str], None],
) -> None:
    """Raise NotGrantedError where something is missing, or with AGENTC_PROLOGUE=warn say it."""
    # A run inside of somebody's allocation asks SLURM for nothing: hours may lie between the two.
    trouble = clock_trouble(environ, time.time()) if asked else ""
    if trouble:
        warn(trouble)
    missing = shortfalls(asked, environ, machine_gpus) if asked else []
    if not missing:
        return
    text = f"it did not get what was asked for: {'; '.join(missing)}\n{_remedy(environ)}"
    if environ.get(MODE_VARIABLE) != "warn":
        raise NotGrantedError(text)
    warn(text)


def visible_gpus(environ: Mapping[str, str], machine_gpus: Callable[[], list[str]]) -> Fact | None:
    """How many GPUs the job sees, or None where nobody can tell."""
    listed = environ.get("CUDA_VISIBLE_DEVICES")
    if "SLURM_JOB_ID" in environ:
        for name in ("SLURM_GPUS_ON_NODE", "SLURM_STEP_GPUS", "SLURM_JOB_GPUS"):
            value = environ.get(name)
            if value:
                count = int(value) if name == "SLURM_GPUS_ON_NODE" else len(value.split(","))
                if listed is not None and _listed(listed) < count:
                    break
                return count, name
        if listed is not None:
            return _listed(listed), f"CUDA_VISIBLE_DEVICES={listed}"
        if "ROCR_VISIBLE_DEVICES" in environ or "ZE_AFFINITY_MASK" in environ:
            return None
        return 0, "SLURM gave none: SLURM_GPUS_ON_NODE and CUDA_VISIBLE_DEVICES are not set"
    if listed is not None:
        # Whoever hides all GPUs on a machine of their own wants the processor to do the work.
        count = _listed(listed)
        return (count, f"CUDA_VISIBLE_DEVICES={listed}") if count else None
    names = machine_gpus()
    return (len(names), f"this machine: {', '.join(names)}") if names else None


def memory_limit(environ: Mapping[str, str]) -> Fact | None:
    """MiB that the job may use on this node: the least of what limits it."""
    known: list[Fact] = []
    per_node = number(environ.get("SLURM_MEM_PER_NODE"))
    per_cpu = number(environ.get("SLURM_MEM_PER_CPU"))
    cpus = number(environ.get("SLURM_CPUS_ON_NODE"))
    if "SLURM_JOB_ID" in environ:
        if per_node:  # 0 is all that the node has
            known.append((per_node, "SLURM_MEM_PER_NODE"))
        elif per_cpu and cpus:
            known.append((per_cpu * cpus, "SLURM_MEM_PER_CPU x SLURM_CPUS_ON_NODE"))
    limit = group_memory_limit()
    if limit is not None:
        known.append((limit // (1 << 20), "its control group"))
    total = _machine_memory()
    if total is not None:
        known.append((total, "this machine"))
    return min(known) if known else None


def time_left(environ: Mapping[str, str], now: float) -> Fact | None:
    """Seconds until SLURM ends the job; None outside of SLURM, or without a limit."""
    span = _allocation(environ)
    if span is None:
        return None
    # A clock that is behind the controller's would promise more than was given.
    return span[1] - max(now, span[0] or now), span[2]


def _allocation(environ: Mapping[str, str]) -> tuple[float | None, float, str] | None:
    """When SLURM began the job, as far as it says, when it will end it, and what says so."""
    job = environ.get("SLURM_JOB_ID")
    if not job:
        return None
    start, end = (number(environ.get(f"SLURM_JOB_{word}_TIME")) for word in ("START", "END"))
    if end:
        return start or _reported_times(job).get("StartTime"), end, "SLURM_JOB_END_TIME"
    known = _reported_times(job)
    if "EndTime" not in known:
        return None
    return known.get("StartTime"), known["EndTime"], f"scontrol show job {job}"


def _reported_times(job: str) -> dict[str, float]:
    found = {}
    for word in show("job", job).split():
        name, _, value = word.partition("=")
        if name in ("StartTime", "EndTime"):
            try:
                found[name] = time.mktime(time.strptime(value, "%Y-%m-%dT%H:%M:%S"))
            except ValueError:  # Unknown, or no limit
                continue
    return found


def _too_short(minutes: int, environ: Mapping[str, str], now: float) -> list[str]:
    """Begin and end are by the controller's clock, from which this node's may differ."""
    span = _allocation(environ)
    if span is None:
        return []
    length = span[1] - (now if span[0] is None else span[0])
    if length + _SLACK_S >= minutes * 60 * _LOCAL_SLACK:
        return []
    left = max(0, length // 60)
    got = "it was given %d" if span[0] is not None else "it ends in %d by this node's clock"
    return [f"{minutes} minutes were asked for, and {got % left} ({span[2]})"]


def gpus_on_node(asked: Mapping[str, str], nodes: int) -> int:
    """GPUs that a job requests on each of its nodes."""
    parts = asked.get("gres", "").split(":")
    if parts[0] == "gpu":
        return int(parts[-1]) if len(parts) > 1 and parts[-1].isdigit() else 1
    return -(-(number(asked.get("gpu")) or 0) // nodes)


def _remedy(environ: Mapping[str, str]) -> str:
    lines = "help: `agentc plan SPEC --profile P` prints who asked for what; "
    if "SLURM_JOB_ID" in environ:
        lines += (
            "`scontrol show job {}` what SLURM gave. snakemake-executor-plugin-slurm before "
            "2.7.1 starts a job once for each of its GPUs: upgrade it".format(
                environ["SLURM_JOB_ID"]
            )
        )
    else:
        lines += "lower `placement:` (it changes no key), or run where there is as much"
    return lines + f". {MODE_VARIABLE}=warn runs all the same"


def _listed(devices: str) -> int:
    words = [word.strip() for word in devices.split(",") if word.strip()]
    return len([word for word in words if word not in ("-1", "NoDevFiles")])


def number(text: str | None) -> int | None:
    """An amount, None where it is not known."""
    try:
        return int(text) if text else None
    except ValueError:  # expressions that could not be evaluated yet
        return None


def _machine_memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // (1 << 20)
    except (ValueError, OSError):
        return None


VARIABLE = "AGENTC_STOP_BY"
"""Unix seconds, for other schedulers than SLURM, and for tests; of two limits the earlier holds."""
MARGIN_S = 20.0
"""What servers, the last records and the two Snakemakes around a wrapper take to end; on a busy
node more, so a fiftieth of long limits is kept, up to a minute."""
_LONGEST_MARGIN_S = 60.0


def stop_by(environ: Mapping[str, str]) -> float | None:
    """The moment, in unix seconds; None where no limit is known. Raises NotGrantedError."""
    known: list[float] = []
    value = environ.get(VARIABLE)
    if value:
        try:
            known.append(float(value))
        except ValueError:
            raise NotGrantedError(
                f"{VARIABLE}={value} is no time; it takes unix seconds, as `date +%s` prints them"
            ) from None
    now = time.time()
    left = time_left(environ, now)
    if left is not None:
        known.append(now + left[0] - min(_LONGEST_MARGIN_S, max(MARGIN_S, left[0] / 50)))
    return min(known) if known else None


def stopped_early(line: Mapping[str, Any]) -> str | None:
    """What a progress line says of a program that stopped in time; None where it did not."""
    if line.get("out_of_time") is not True:
        return None
    where = ""
    if isinstance(line.get("done"), (int, float)):
        total = line.get("total")
        unit = str(line.get("unit") or "")
        where = f", at {unit[:-1] if unit.endswith('s') else unit} {line['done']:g}"
        where += f" of {total:g}" if isinstance(total, (int, float)) else ""
    return f"it stopped before its time limit{where}, with its work saved"

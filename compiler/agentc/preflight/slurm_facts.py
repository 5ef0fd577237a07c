"""What SLURM's commands print: partitions with their nodes, qualities of service, associations. The
commands run at once, each within a time limit; tests read answers recorded from a real cluster."""

from __future__ import annotations

import getpass
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

TIMEOUT_S = 10.0

QUERIES: Mapping[str, tuple[str, ...]] = {
    "partitions": ("scontrol", "show", "partition", "-o"),
    "nodes": ("sinfo", "-h", "-e", "-o", "%R|%D|%T|%c|%m|%G|%f"),
    "qos": (
        *("sacctmgr", "-n", "-P", "show", "qos"),
        "format=Name,MaxWall,MaxTRES,MaxTRESPU,GrpTRES,MaxJobsPU,MaxSubmitPU,GrpJobs,GrpSubmit",
    ),
    "associations": (
        *("sacctmgr", "-n", "-P", "show", "assoc", "user={user}"),
        "format=Account,Partition,QOS,MaxWall,MaxTRES,MaxJobs,MaxSubmit,GrpJobs,GrpSubmit,DefaultQOS",
    ),
    "user": ("sacctmgr", "-n", "-P", "show", "user", "{user}", "format=User,DefaultAccount"),
    "config": ("scontrol", "show", "config"),
}
"""What is asked, by name. `sinfo` gives a line for each kind of node in each partition and state,
so that ten thousand nodes are a few lines."""


@dataclass(frozen=True, slots=True)
class SlurmAnswer:
    """The text of an answer, or why there is none."""

    text: str = ""
    failure: str | None = None


def ask_slurm(timeout_s: float = TIMEOUT_S) -> dict[str, SlurmAnswer]:
    """The answers to QUERIES."""
    with ThreadPoolExecutor(len(QUERIES)) as pool:
        asked = {name: pool.submit(_ask, words, timeout_s) for name, words in QUERIES.items()}
        return {name: answer.result() for name, answer in asked.items()}


def _ask(words: tuple[str, ...], timeout_s: float) -> SlurmAnswer:
    program = shutil.which(words[0])
    if program is None:
        return SlurmAnswer(failure=f"{words[0]} is not on PATH of this machine")
    argv = [program, *(word.format(user=getpass.getuser()) for word in words[1:])]
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return SlurmAnswer(failure=f"`{' '.join(words[:3])}` gave no answer within {timeout_s:g} s")
    except OSError as error:
        return SlurmAnswer(failure=f"{words[0]} cannot be run: {error.strerror}")
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines()
        why = lines[-1] if lines else f"status {done.returncode}"
        return SlurmAnswer(failure=f"`{' '.join(words[:3])}` failed: {why}")
    return SlurmAnswer(text=done.stdout)


_PAIR = re.compile(r"(?:^| )([A-Za-z][A-Za-z/:_]*)=")
_NOTHING = ("", "NONE", "N/A", "UNLIMITED", "INFINITE", "(null)", "NOT_SET", "Partition_Limit")
_SIZES = {"K": 1 / 1024, "M": 1, "G": 1024, "T": 1024**2, "P": 1024**3}
_GONE = ("down", "drain", "fail", "maint", "unk", "boot", "power", "resv", "reserved", "planned")


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """Nodes of one partition that are alike, and in one state; `memory_mb` and `gpus` (by type)
    are those of each."""

    count: int
    state: str
    cpus: int
    memory_mb: int
    gpus: Mapping[str, int] = field(default_factory=dict)
    features: frozenset[str] = frozenset()

    @property
    def works(self) -> bool:
        """Whether jobs can start on them, now or when others have ended."""
        return not self.state.endswith("*") and not self.state.lower().startswith(_GONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """Limits are None where there are none; lists of who may use it are None for everybody."""

    name: str
    default: bool
    state: str
    max_minutes: int | None
    default_minutes: int | None
    max_nodes: int | None
    max_memory_mb: int | None
    accounts: tuple[str, ...] | None
    denied_accounts: tuple[str, ...]
    qos: tuple[str, ...] | None
    own_qos: str | None
    nodes: tuple[Nodes, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCounts:
    """How many jobs may be there at once, None where there is no limit: of a user in the queue
    (`submitted`) and running, and of all users together."""

    running: int | None = None
    submitted: int | None = None
    all_running: int | None = None
    all_submitted: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Qos:
    """A quality of service; `most` is what one job may have, by name (`cpu`, `mem` in MiB, `node`,
    `gres/gpu`)."""

    name: str
    max_minutes: int | None
    most: Mapping[str, int]
    counts: JobCounts = JobCounts()


@dataclass(frozen=True, slots=True, kw_only=True)
class Association:
    """An account that the user may charge, with the qualities of service allowed there;
    `partition` is None for all."""

    account: str
    partition: str | None
    qos: tuple[str, ...]
    max_minutes: int | None
    most: Mapping[str, int]
    counts: JobCounts = JobCounts()
    default_qos: str | None = None


def read_partitions(shown: str, listed: str) -> dict[str, Partition]:
    """`scontrol show partition -o` with the nodes of `sinfo`."""
    nodes = read_nodes(listed)
    found = {}
    for line in shown.splitlines():
        pairs = _pairs(line)
        name = pairs.get("PartitionName")
        if name is None:
            continue
        found[name] = Partition(
            name=name,
            default=pairs.get("Default") == "YES",
            state=pairs.get("State", "UP"),
            max_minutes=read_minutes(pairs.get("MaxTime", "")),
            default_minutes=read_minutes(pairs.get("DefaultTime", "")),
            max_nodes=_count(pairs.get("MaxNodes", "")),
            max_memory_mb=_count(pairs.get("MaxMemPerNode", "")) or None,
            accounts=_names(pairs.get("AllowAccounts", "ALL")),
            denied_accounts=_names(pairs.get("DenyAccounts", "ALL")) or (),
            qos=_names(pairs.get("AllowQos", "ALL")),
            own_qos=None if pairs.get("QoS", "N/A") in _NOTHING else pairs["QoS"],
            nodes=tuple(nodes.get(name, ())),
        )
    return found


def read_nodes(listed: str) -> dict[str, list[Nodes]]:
    """`sinfo -o '%R|%D|%T|%c|%m|%G|%f'` by partition."""
    found: dict[str, list[Nodes]] = {}
    for line in listed.splitlines():
        cells = line.strip().split("|")
        if len(cells) != 7:
            continue
        name, count, state, cpus, memory, gres, features = cells
        found.setdefault(name, []).append(
            Nodes(
                count=_count(count) or 0,
                state=state,
                cpus=_count(cpus) or 0,
                memory_mb=_count(memory) or 0,
                gpus=read_gpus(gres),
                features=frozenset(
                    word for word in features.split(",") if word not in ("(null)", "")
                ),
            )
        )
    return found


def read_qos(shown: str) -> dict[str, Qos]:
    """`sacctmgr show qos format=Name,MaxWall,MaxTRES,MaxTRESPU,GrpTRES` and then the counts of
    jobs: the tightest of the limits on what one job can have."""
    found = {}
    for line in shown.splitlines():
        cells = line.split("|")
        if len(cells) < 5 or not cells[0]:
            continue
        most: dict[str, int] = {}
        for text in cells[2:5]:
            for name, amount in read_tres(text).items():
                most[name] = min(amount, most.get(name, amount))
        found[cells[0]] = Qos(
            name=cells[0], max_minutes=read_minutes(cells[1]), most=most, counts=_counts(cells[5:])
        )
    return found


def read_associations(shown: str) -> tuple[Association, ...]:
    """`sacctmgr show assoc format=Account,Partition,QOS,MaxWall,MaxTRES`, then the counts of jobs
    and DefaultQOS."""
    rows = [line.split("|") for line in shown.splitlines() if line.count("|") >= 4]
    return tuple(
        Association(
            account=cells[0],
            partition=cells[1] or None,
            qos=tuple(name for name in cells[2].split(",") if name),
            max_minutes=read_minutes(cells[3]),
            most=read_tres(cells[4]),
            counts=_counts(cells[5:]),
            default_qos=(cells[9] or None) if len(cells) > 9 else None,
        )
        for cells in rows
        if cells[0]
    )


def read_default_account(shown: str) -> str | None:
    """`sacctmgr show user NAME format=User,DefaultAccount`."""
    rows = [line.split("|") for line in shown.splitlines() if "|" in line]
    return (rows[0][1].strip() or None) if rows else None


def enforces_counts(shown: str) -> bool:
    """Whether the cluster holds users to limits, by `scontrol show config`; yes where that does
    not say."""
    match = re.search(r"^AccountingStorageEnforce\s*=\s*(\S+)", shown, re.MULTILINE)
    return match is None or bool({"limits", "safe"} & set(match[1].lower().split(",")))


def _counts(cells: Sequence[str]) -> JobCounts:
    """MaxJobs, MaxSubmit, GrpJobs, GrpSubmit; older answers have none of them."""
    numbers = [_count(cell) if cell.strip() else None for cell in cells[:4]]
    numbers += [None] * (4 - len(numbers))
    return JobCounts(
        running=numbers[0],
        submitted=numbers[1],
        all_running=numbers[2],
        all_submitted=numbers[3],
    )


def read_minutes(text: str) -> int | None:
    """`1-00:30:00`, `04:00:00`, `30:00`, `90`; None for no limit. Seconds are rounded up."""
    text = text.strip()
    if text in _NOTHING or text.lower() in ("infinite", "none", "unlimited", "n/a"):
        return None
    days, dash, clock = text.rpartition("-")
    try:
        parts = [int(part) for part in clock.split(":")]
        whole = int(days) * 24 * 60 if dash else 0
    except ValueError:
        return None
    if dash:  # days-hours[:minutes[:seconds]]
        parts += [0] * (3 - len(parts))
    elif len(parts) == 1:
        parts = [0, parts[0], 0]
    elif len(parts) == 2:
        parts = [0, *parts]
    hours, minutes, seconds = parts[:3]
    return whole + hours * 60 + minutes + (1 if seconds else 0)


def read_gpus(gres: str) -> dict[str, int]:
    """GPUs by type of `gpu:a100:4(S:0-1),gpu:2,tmp:100G`; the type is "" where none is named."""
    found: dict[str, int] = {}
    for part in re.sub(r"\([^)]*\)", "", gres).split(","):
        words = part.split(":")
        if words[0] != "gpu":
            continue
        kind = words[1] if len(words) > 1 and not words[1].isdigit() else ""
        count = int(words[-1]) if words[-1].isdigit() else 1
        found[kind] = found.get(kind, 0) + count
    return found


def read_tres(text: str) -> dict[str, int]:
    """`cpu=32,mem=64G,gres/gpu=4` as numbers, memory in MiB."""
    found = {}
    for part in text.split(","):
        name, equals, amount = part.partition("=")
        match = re.fullmatch(r"([\d.]+)([KMGTP]?)", amount.strip())
        if equals and match:
            value = float(match[1])
            found[name.strip()] = round(
                value * _SIZES[match[2]] if match[2] and name == "mem" else value
            )
    return found


def _pairs(line: str) -> dict[str, str]:
    """`Name=value Other=value with spaces`."""
    starts = list(_PAIR.finditer(line))
    ends = [match.start() for match in starts[1:]] + [len(line)]
    return {
        match[1]: line[match.end() : end].strip() for match, end in zip(starts, ends, strict=True)
    }


def _count(text: str) -> int | None:
    match = re.match(r"\d+", text.strip())
    return None if text.strip() in _NOTHING or match is None else int(match[0])


def _names(text: str) -> tuple[str, ...] | None:
    return None if text in ("ALL", *_NOTHING) else tuple(text.split(","))

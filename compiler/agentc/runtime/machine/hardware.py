"""The GPUs that jobs on this machine may have, how those of a job are divided among its servers and
its program, and the machine as manifests describe it.

Which GPUs: those of AGENTC_GPUS, else what is visible, else what the driver's own tool lists, by
the numbers of `nvidia-smi`, in the order of the PCI bus. `device_lease.py` leases them to jobs.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from agentc.lease_roles import is_model_server

GPUS_VARIABLE = "AGENTC_GPUS"
"""How many GPUs, or which: `4`, `0,2`, `3,` (number 3 alone), `GPU-8d4f...,MIG-51b3...`."""
VISIBLE = "CUDA_VISIBLE_DEVICES"
_ORDER = "CUDA_DEVICE_ORDER"
_VISIBLE_HIP = "HIP_VISIBLE_DEVICES"
_KFD = Path("/sys/class/kfd/kfd/topology/nodes")
_CARDS = Path("/proc/driver/nvidia/gpus")
_NVIDIA = Path("/dev/nvidiactl")
_PATIENCE_S = 30.0
_GPU_LINE = re.compile(r"GPU (\d+): .*\(UUID: ([^)\s]+)\)")
_MIG_LINE = re.compile(r"\s+MIG .*\(UUID: ([^)\s]+)\)")


class DevicesError(Exception):
    """What was said of GPUs cannot be, or less is free for ever than is asked for; the message
    names the remedy."""


class Device(NamedTuple):
    """`name` is what programs are told, `identity` what every process on this machine calls it."""

    name: str
    identity: str


class ListedGpu(NamedTuple):
    """A GPU as the driver lists it; `parts` are its MIG devices."""

    number: str
    uuid: str
    parts: tuple[str, ...]


def machine_devices(
    environ: Mapping[str, str], ask: Callable[[], list[ListedGpu]] | None = None
) -> tuple[Device, ...]:
    """The GPUs of this machine that jobs may have; () where there are none, where nobody can tell,
    and where somebody hides them for the processor to do the work. Raises DevicesError."""
    said, visible = _words(environ.get(GPUS_VARIABLE)), _words(environ.get(VISIBLE))
    text = environ.get(GPUS_VARIABLE, "").strip()
    count = int(text) if text.isdigit() else None
    if gpus_hidden(environ):
        return ()
    listed = (ask or list_gpus)()
    names = _visible_names(visible, listed)
    if count is not None:
        if not names:
            names = [str(number) for number in range(count)]
        if count > len(names):
            where = f"{VISIBLE}={environ[VISIBLE]}" if visible is not None else "the driver"
            raise DevicesError(
                "%s=%d, and %s shows %d GPUs; lower it, or list those that are meant"
                % (GPUS_VARIABLE, count, where, len(names))
            )
        names = names[:count]
    elif said is not None:
        wrong = [word for word in said if not _is_name(word)]
        if wrong or not said:
            raise DevicesError(
                f"{GPUS_VARIABLE}={environ[GPUS_VARIABLE]} is neither a number of GPUs nor a "
                "list of them; expected `4`, `0,2` or "
                "names as `nvidia-smi -L` prints them (GPU-..., MIG-...), joined by commas"
            )
        names = said
    devices = [Device(name, _identity(name, listed, environ)) for name in names]
    twice = {
        device.identity
        for device in devices
        if [o.identity for o in devices].count(device.identity) > 1
    }
    if twice:
        raise DevicesError(f"{min(twice)} is listed twice among the GPUs")
    return tuple(devices)


def gpus_hidden(environ: Mapping[str, str]) -> str:
    """The setting by which somebody hides every GPU so that the CPU does the work; else ""."""
    said, visible = environ.get(GPUS_VARIABLE), environ.get(VISIBLE)
    if said is not None and said.strip().isdigit() and int(said) == 0:
        return f"{GPUS_VARIABLE}={said.strip()}"
    if _words(said) is None and visible is not None and _words(visible) == []:
        return f"{VISIBLE}={visible}"
    return ""


def may_have_gpus(environ: Mapping[str, str]) -> bool:
    """Whether programs could find a GPU here, as far as can be told without asking anybody."""
    if _words(environ.get(GPUS_VARIABLE)) is not None or _words(environ.get(VISIBLE)):
        return True
    return _NVIDIA.exists() or _KFD.is_dir()


def visible_devices(environ: Mapping[str, str]) -> list[str] | None:
    """What CUDA_VISIBLE_DEVICES lists, None where it is not set."""
    return _words(environ.get(VISIBLE))


def visibility(names: Sequence[str], numbered: bool) -> Mapping[str, str]:
    """Variables that show a program these GPUs and no other; `numbered`: numbers are those of the
    PCI bus, as everywhere here but where a queue gave them."""
    shown = {VISIBLE: ",".join(names)}
    if _KFD.is_dir():
        shown[_VISIBLE_HIP] = shown[VISIBLE]
    if numbered and any(name.isdigit() for name in names):
        shown[_ORDER] = "PCI_BUS_ID"
    return shown


def list_gpus() -> list[ListedGpu]:
    """What the driver's tool lists, else what the kernel does."""
    gpus: list[ListedGpu] = []
    program = shutil.which("nvidia-smi")
    if program is not None:
        with suppress(OSError, subprocess.SubprocessError):
            listing = subprocess.run(
                [program, "-L"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=_PATIENCE_S,
                check=False,
            )
            gpus = read_listing(listing.stdout.decode("utf-8", "replace"))
            if gpus:
                return gpus
    for number, card in enumerate(sorted(_CARDS.glob("*/information"))):
        with suppress(OSError):
            uuid = re.search(r"^GPU UUID:\s*(\S+)", card.read_text(errors="replace"), re.MULTILINE)
            gpus.append(ListedGpu(str(number), uuid.group(1) if uuid else card.parent.name, ()))
    count = 0 if gpus else _amd_cards()
    return gpus + [ListedGpu(str(number), f"amd-{number}", ()) for number in range(count)]


def _amd_cards() -> int:
    """Processors have a node as well, with no number."""
    count = 0
    for node in sorted(_KFD.glob("*/gpu_id")):
        with suppress(OSError):
            count += node.read_text().strip() not in ("", "0")
    return count


def read_listing(text: str) -> list[ListedGpu]:
    """What `nvidia-smi -L` prints."""
    gpus: list[ListedGpu] = []
    for line in text.splitlines():
        gpu, part = _GPU_LINE.match(line), _MIG_LINE.match(line)
        if gpu:
            gpus.append(ListedGpu(gpu.group(1), gpu.group(2), ()))
        elif part and gpus:
            gpus[-1] = gpus[-1]._replace(parts=(*gpus[-1].parts, part.group(1)))
    return gpus


def _visible_names(visible: list[str] | None, listed: Sequence[ListedGpu]) -> list[str]:
    if visible is not None:
        return visible
    # Programs take numbers or names, and not both in one list.
    parted = any(gpu.parts for gpu in listed)
    return [name for gpu in listed for name in gpu.parts or (gpu.uuid if parted else gpu.number,)]


def _identity(name: str, listed: Sequence[ListedGpu], environ: Mapping[str, str]) -> str:
    """A number means another GPU inside of a container or a job of SLURM's, its UUID does not."""
    for gpu in listed:
        if name == gpu.number or (name.startswith("GPU-") and gpu.uuid.startswith(name)):
            return gpu.uuid
    job = environ.get("SLURM_JOB_ID")
    return f"slurm-{job}-{name}" if job and name.isdigit() else name


def _is_name(word: str) -> bool:
    return word.isdigit() or re.match(r"(GPU|MIG)-[A-Za-z0-9/-]+$", word) is not None


def _words(text: str | None) -> list[str] | None:
    """The words of a list; as CUDA does it, none from the first one that hides the rest."""
    if text is None:
        return None
    words: list[str] = []
    for word in (each.strip() for each in text.split(",")):
        if word in ("-1", "NoDevFiles"):
            break
        if word:
            words.append(word)
    return words


AUTO = "auto"


class TooFewDevicesError(Exception):
    """Servers that would have to share a GPU; the message says how many are needed."""


class DeviceTaker(NamedTuple):
    """A server by what decides on its GPUs: how many each copy takes, where its lease says it, and
    how many copies of it there are (`AUTO`: as many as there is room for)."""

    role: str
    backend: str
    devices: int = 0
    copies: int | str | None = None

    def number_of_copies(self, there: int, others: int = 0) -> int:
        """Within a job that has so many GPUs, of which other servers take some."""
        if self.copies == AUTO:
            return max(1, (there - others) // self.devices) if self.devices else 1
        return int(self.copies or 1)


def divide(
    names: Sequence[str], servers: Mapping[str, DeviceTaker]
) -> tuple[dict[str, list[list[str]]], list[str]]:
    """GPUs of each copy of each server, by what it is called here, and of the program. Raises
    TooFewDevicesError."""
    wanted = wanted_devices(servers, len(names))
    counts = {name: wanted[name] * servers[name].number_of_copies(0) for name in servers}
    copies = {
        name: server.number_of_copies(len(names), sum(counts.values()) - counts[name])
        for name, server in servers.items()
    }
    needed = sum(wanted[name] * copies[name] for name in servers)
    if needed > len(names):
        takers = [
            f"the {server.role} server ({server.backend}) {wanted[name] * copies[name]}"
            for name, server in servers.items()
            if wanted[name]
        ]
        raise TooFewDevicesError(
            "its servers take %d GPUs and there are %d: %s. No two servers share one; ask for "
            "`placement: {gpus: %d}`" % (needed, len(names), ", ".join(takers), needed)
        )
    left = list(names)
    given: dict[str, list[list[str]]] = {}
    for name in servers:
        given[name] = []
        for _ in range(copies[name]):
            given[name].append(left[: wanted[name]])
            left = left[wanted[name] :]
    return given, left


def wanted_devices(servers: Mapping[str, DeviceTaker], there: int) -> dict[str, int]:
    """How many a copy of each takes, where so many are there."""
    counts = {name: server.devices for name, server in servers.items()}
    if any(counts.values()):
        return counts
    # Servers that state no number: they may use whatever they see.
    models = [name for name, server in servers.items() if is_model_server(server.role)]
    return {name: there if [name] == models[:1] else 0 for name in servers}


_QUERY = "--query-gpu=name,memory.total,driver_version"
_QUERY_PATIENCE_S = 10.0


class MachineProbe:
    """Starts asking for GPUs at once (nvidia-smi may take a second) and describes the machine
    later, when the answer has long been there."""

    def __init__(self) -> None:
        self._asked = _ask_for_gpus()
        self._known: dict[str, Any] | None = None
        self.given: list[str] = []
        """Those GPUs that the job had, by their names; [] where nobody gave any out."""

    def describe(self) -> dict[str, Any]:
        """`{"host", "system", "machine", "cpus", "cores", "cpu", "memory_mb", "gpus", ...}`.

        `cpus` are those that this process may use, `cores` all of the machine. With nvidia-smi,
        `gpu_memory_mb` and `gpu_driver` are there too; `gpus_given` where the job has some of them.
        """
        if self._known is None:
            self._known = {**_processor(), **self._gpus()}
        return {**self._known, "gpus_given": self.given} if self.given else self._known

    def _gpus(self) -> dict[str, Any]:
        if self._asked is not None:
            try:
                text, _ = self._asked.communicate(timeout=_QUERY_PATIENCE_S)
                gpus = read_gpus(text.decode("utf-8", "replace"))
            except (subprocess.TimeoutExpired, OSError, ValueError):
                self._asked.kill()
                gpus = {}
            if gpus:
                return gpus
        return {"gpus": _cards()}


def read_gpus(text: str) -> dict[str, Any]:
    """nvidia-smi's answer (CSV without header and units) as fields; {} when it lists no GPU."""
    rows = [[cell.strip() for cell in line.split(",")] for line in text.splitlines()]
    rows = [row for row in rows if len(row) == 3 and row[1].isdigit()]
    if not rows:
        return {}
    return {
        "gpus": [name for name, _, _ in rows],
        "gpu_memory_mb": [int(memory) for _, memory, _ in rows],
        "gpu_driver": rows[0][2],
    }


def _ask_for_gpus() -> subprocess.Popen[bytes] | None:
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    try:
        return subprocess.Popen(
            [program, _QUERY, "--format=csv,noheader,nounits"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except OSError:
        return None


def _cards() -> list[str]:
    if not _CARDS.is_dir():
        return []
    models = (_first_field(card / "information", "Model") for card in sorted(_CARDS.iterdir()))
    return [model or "unknown" for model in models]


def _processor() -> dict[str, Any]:
    machine = os.uname()
    processor: dict[str, Any] = {
        "host": machine.nodename,
        "system": f"{machine.sysname} {machine.release}",
        "machine": machine.machine,
        "cpus": _usable_cpus(),
        "cores": os.cpu_count() or 1,
    }
    model = _first_field(Path("/proc/cpuinfo"), "model name")
    if model:
        processor["cpu"] = model
    memory = _first_field(Path("/proc/meminfo"), "MemTotal")
    if memory:
        processor["memory_mb"] = int(memory.split()[0]) // 1024
    return processor


def _usable_cpus() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def _first_field(path: Path, name: str) -> str | None:
    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line.startswith(name):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return None

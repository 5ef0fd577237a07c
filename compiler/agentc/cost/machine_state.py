"""The state of this machine: short measurements that an estimate needs, and how many of its CPU
cores are free now.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from agentc.backend_api import BackendTable
from agentc.cost import hardware, statements
from agentc.cost.estimate import PRIOR, Estimate
from agentc.cost.hardware import Calibration
from agentc.cost.quantities import Z10
from agentc.cost.statements import Sounding
from agentc.cost.summary import Band
from agentc.runtime.software import environment
from agentc.runtime.store.layout import StoreLayout
from agentc.runtime.store.plan_file import module_of

_PATIENCE_S = 180.0
_AGAIN_S = 3600.0
_TRAINERS = "torch"
"""The software environment that trainers and servers on processors share."""

Report = Callable[[str], None]


def machine_measured(
    document: Mapping[str, Any], store: StoreLayout, report: Report | None
) -> Calibration | None:
    """What the store knows of this machine with the plan's software; measured now where it knows
    nothing and `report` is given, which is told so."""
    lock = str(document["environments"].get(_TRAINERS, {}).get("lock") or "")
    if not lock:
        return None
    known = hardware.read_calibration(store, lock)
    file = hardware.calibration_file(store, lock)
    if known is not None or report is None or _tried_lately(file):
        return known
    measured = _run(
        store, lock, hardware.PROGRAM, None, lambda: report("measuring this machine, once: a few"
        " seconds of computing")
    )  # fmt: skip
    if store.environment(lock).is_dir():  # else there was nothing to try
        _keep(file, {"machine": hardware.machine_words(), "measured": measured})
    return hardware.read_calibration(store, lock)


def machine_unknown(document: Mapping[str, Any], store: StoreLayout) -> bool:
    """Whether this machine could be measured with the plan's software, and the store knows nothing
    of it."""
    return _TRAINERS in document["environments"] and machine_measured(document, store, None) is None


def _tried_lately(file: Path) -> bool:
    """Whether it was measured within the hour, in vain: a machine that was too busy."""
    try:
        return time.time() - file.stat().st_mtime < _AGAIN_S
    except OSError:
        return False


def environments_sounded(
    document: Mapping[str, Any], table: BackendTable, store: StoreLayout, report: Report | None
) -> dict[str, Sounding]:
    """What the plan's environments say of themselves, by `sounding.name_of`; asked now where the
    store knows nothing and `report` is given."""
    found = {}
    for name, lease in statements.to_sound(document, table):
        if "settings" not in lease:
            continue  # a server of somebody's own ways, which is told nothing
        lock = str(document["environments"].get(lease["environment"], {}).get("lock") or "")
        file = store.root / "calibration" / f"{_digest(name, lease)}.json"
        try:
            told = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            told = None
            if report is not None and lock:
                asked = {"program": lease["program"], "settings": lease["settings"]}
                told = _run(store, lock, statements.PROGRAM, asked, lambda: None)
        try:
            found[name] = statements.read_sounding(told)
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
        if report is not None:
            _keep(file, told)
    return found


def _digest(name: str, lease: Mapping[str, Any]) -> str:
    text = json.dumps([name, lease["version"], lease["settings"]], sort_keys=True)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


def _run(
    store: StoreLayout,
    lock: str,
    module: str,
    asked: Mapping[str, Any] | None,
    begins: Callable[[], None],
) -> Any:
    """What a program of ours writes as JSON, or None: its software is not built, it fails, or it
    takes too long."""
    directory = store.environment(lock)
    record = environment.read_complete(directory)
    if record is None:
        return None
    begins()
    try:
        programs = [module]
        if asked is not None:
            programs.append(module_of(asked["program"]))
        code = environment.code_directory(store, programs)
        python = environment.python_command(directory, record, store.root, code)
        software = environment.programs_of(directory, record)
        with TemporaryDirectory(prefix="agentc-measure-") as folder:
            out = Path(folder) / "out.json"
            words = [str(out)]
            if asked is not None:
                given = Path(folder) / "in.json"
                given.write_text(json.dumps(asked), encoding="utf-8")
                words.insert(0, str(given))
            subprocess.run(
                [*python, "-m", module, *words],
                cwd=folder,
                env=environment.job_variables(code, 1, False, {}, software),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=True,
                timeout=_PATIENCE_S,
            )
            return json.loads(out.read_text(encoding="utf-8"))
    except (OSError, ValueError, subprocess.SubprocessError, environment.SoftwareEnvironmentError):
        return None


def _keep(file: Path, content: Any) -> None:
    """Written beside and renamed; a store that cannot be written to keeps nothing."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        beside = file.with_suffix(f".{hashlib.sha256(repr(content).encode()).hexdigest()[:8]}.tmp")
        beside.write_text(json.dumps(content), encoding="utf-8")
        beside.replace(file)
    except OSError:
        return


# How much of this machine's CPU cores is free now: others may use them.
#
# A load average says how many want to run, not what a newcomer gets (control groups and priorities
# decide that), so where the load is high it is tried: a few processes compute for a moment.

_IDLE = 0.25
"""Load for each core below which nobody is in the way."""
_TRIED_S = 1.0
_WAITING = 0.2
"""The part of a job's time in which it waits for disks, clocks and servers, whoever computes."""
_SPIN = (
    "import time;a=time.monotonic();b=time.process_time()\n"
    f"while time.monotonic()-a<{_TRIED_S}: sum(range(2000))\n"
    "print((time.process_time()-b)/(time.monotonic()-a))"
)


def share_of_cores(cores: int) -> float:
    """The share, in (0, 1], of so many cores that a run would get if it began now; 1.0 where the
    load is low or it cannot be tried."""
    try:
        if os.getloadavg()[0] < _IDLE * cores:
            return 1.0
        command = [sys.executable, "-I", "-S", "-c", _SPIN]
        started = [
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            for _ in range(cores)
        ]
        shares = [float(each.communicate(timeout=60)[0]) for each in started]
    except (OSError, ValueError, subprocess.SubprocessError):
        return 1.0
    return max(0.02, min(1.0, sum(shares) / cores))


def slowed(estimates: Mapping[str, Estimate], share: float) -> dict[str, Estimate]:
    """What is to run on processors takes longer, but for what waits anyhow, by the share. Times
    that rest on finished jobs stay as they are: those ran beside others as well, as far as anybody
    knows."""
    times = _WAITING + (1 - _WAITING) / share
    return {
        name: replace(each, seconds=each.seconds.times(times))
        if each.state == "run" and not each.gpus and not each.like and each.basis == PRIOR
        else each
        for name, each in estimates.items()
    }


def widened(band: Band, share: float) -> Band:
    """A band of time, wider by what others may do meanwhile: they may leave, or be joined by as
    many. The logarithm's standard deviation that this adds is a third of what they cost now."""
    more = Z10 * math.log(1 / share) / 3

    def factor(ratio: float) -> float:
        return math.exp(math.hypot(math.log(ratio), more))

    if not 0 < band.low <= band.median <= band.high:
        return band
    return Band(
        low=band.median / factor(band.median / band.low),
        median=band.median,
        high=band.median * factor(band.high / band.median),
    )

"""Measures for an estimate what only a run would tell otherwise, within seconds, and keeps it.

Programs run in software that is built already, and never build any. What cannot be measured is left
to the prior: an estimate is no place to fail. Neighbours: `calibration.py`, `sounding.py`.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from agentc.backend_api import BackendTable
from agentc.cost import calibration, sounding
from agentc.cost.calibration import Calibration
from agentc.cost.sounding import Sounding
from agentc.runtime.software import environment
from agentc.runtime.store.layout import StoreLayout
from agentc.runtime.store.moved_programs import module_of

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
    known = calibration.read_calibration(store, lock)
    file = calibration.calibration_file(store, lock)
    if known is not None or report is None or _tried_lately(file):
        return known
    measured = _run(
        store, lock, calibration.PROGRAM, None, lambda: report("measuring this machine, once: a few"
        " seconds of computing")
    )  # fmt: skip
    if store.environment(lock).is_dir():  # else there was nothing to try
        _keep(file, {"machine": calibration.machine_words(), "measured": measured})
    return calibration.read_calibration(store, lock)


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
    for name, lease in sounding.to_sound(document, table):
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
                told = _run(store, lock, sounding.PROGRAM, asked, lambda: None)
        try:
            found[name] = sounding.sounding_of(told)
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

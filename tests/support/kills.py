"""kill -9 at random moments: the processes of a run by what they do, one of them hit, and what must
hold afterwards. `AGENTC_KILLS` and `AGENTC_KILL_SEED` say how often and which way."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.support.patience import wait_for
from tiny_plan import drivers_of, processes_of

from agentc.runtime.machine.process import parent_of
from agentc.runtime.store.layout import StoreLayout
from agentc.store.objects import list_objects, verify_object

AT_START = "agentc run, as a wrapper starts"
KINDS = (
    AT_START,
    "agentc run",
    "Snakemake",
    "wrapper",
    "watchdog",
    "program",
    "model server",
    "environment server",
)
HARMLESS = ("watchdog",)
"""Who is replaced, so that the run goes on."""
_WRAPPER = "agentc.runtime.job"


def kills_wanted(usual: int) -> int:
    """How many kills a long test makes."""
    return int(os.environ.get("AGENTC_KILLS", usual))


def dice() -> random.Random:
    """Chance that can be repeated."""
    return random.Random(int(os.environ.get("AGENTC_KILL_SEED", "1")))


def by_kind(store: Path) -> dict[str, list[int]]:
    """What runs on the store, by kind."""
    marked = processes_of(store)
    found: dict[str, list[int]] = {}
    for pid in sorted({*drivers_of(store), *marked}):
        found.setdefault(_kind(pid, pid in marked), []).append(pid)
    return found


def kill_one(
    process: subprocess.Popen[bytes],
    store: Path,
    kind: str,
    patience: float,
    chance: random.Random,
) -> bool:
    """Kill a process of that kind of the run, as soon as there is one; False when there is none for
    so many seconds, or the run was over first."""
    known = set(by_kind(store).get("wrapper", ()))
    until = time.monotonic() + patience
    while process.poll() is None and time.monotonic() < until:
        victims = by_kind(store).get("wrapper" if kind == AT_START else kind, [])
        if kind == AT_START:
            victims = [process.pid for pid in victims if pid not in known]
        if victims:
            with contextlib.suppress(ProcessLookupError):
                os.kill(chance.choice(victims), signal.SIGKILL)
                return True
        time.sleep(0.01)
    return False


def cut_off(
    store: Path,
    longest: float,
    chance: random.Random,
    killed: Counter[str],
    process: subprocess.Popen[bytes],
    kinds: Sequence[str] = KINDS,
) -> str:
    """Let a run go on for up to `longest` seconds, kill something of it, and wait for its end.
    Returns what was killed in words."""
    hit = []
    time.sleep(chance.uniform(0.0, longest))
    while process.poll() is None:
        kind = chance.choice(kinds)
        if kill_one(process, store, kind, longest / 2, chance):
            hit.append(kind)
            killed[kind] += 1
            if kind not in HARMLESS:
                break
            time.sleep(chance.uniform(0.0, longest / 4))
    process.wait(timeout=900)
    _assert_no_orphan(store, time.time())
    return ", ".join(hit)


def digests(store: Path) -> dict[str, str]:
    """Digest of each file that the jobs made, the report's aside: it tells times."""
    return {
        str(path.relative_to(store / "objects")): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted((store / "objects").glob("*/*/data/**/*"))
        if path.is_file() and path.relative_to(store / "objects").parts[0] != "report"
    }


def assert_clean(store: Path) -> None:
    """No process is left, and every object is what its manifest says."""
    wait_for(lambda: not processes_of(store) and not drivers_of(store))
    found, problems = list_objects(StoreLayout(store))
    assert problems == []
    assert [problem for stored in found for problem in verify_object(stored)] == []


def _assert_no_orphan(store: Path, ended: float) -> None:
    """Nothing was begun after the end of the run, and nothing is left."""
    wait_for(lambda: not processes_of(store) and not drivers_of(store))
    for path in (store / "objects").glob("*/*/artifact.json"):
        assert json.loads(path.read_text())["started"] < ended, f"{path} was made by an orphan"


def _kind(pid: int, marked: bool) -> str:
    line = _line(pid)
    if _WRAPPER in line and not marked:
        return "watchdog" if _WRAPPER in _line(parent_of(pid)) else "wrapper"
    if not marked:
        return "Snakemake" if "snakemake --snakefile" in line else "agentc run"
    if "servers.transformers" in line or "/server.py" in line:
        return "model server"
    if "job_serve" in line:
        return "environment server"
    return "program"


def _line(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return ""

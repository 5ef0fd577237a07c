"""Verifies a built software stack: its interpreter, its files, its pins, its imports."""

from __future__ import annotations

import base64
import csv
import io
import json
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path

from agentc.runtime.software.container import ContainerError, describe_image
from agentc.runtime.software.installation import REQUIREMENTS
from agentc.runtime.software.job_software import SoftwareError, python_command
from agentc.runtime.software.lock_text import LockText, normalised, read_lock_text
from agentc.runtime.software.variables import variables_for_builds, variables_for_engine
from agentc.runtime.store.digests import sha256_of
from agentc.software.inventory import Installed

_SHOWN = 5
_IMPORT_S = 300.0
# Reads lists of modules; tells which of them cannot be imported, and why.
_IMPORT = """\
import importlib, json, sys
wrong = {}
for name in json.load(sys.stdin):
    try:
        importlib.import_module(name)
    except BaseException as error:
        wrong[name] = "%s: %s" % (type(error).__name__, str(error).split(chr(10))[0])
sys.stdout.write(chr(10) + json.dumps(wrong))
"""


@dataclass(frozen=True, slots=True)
class Distribution:
    """An installed distribution, by its `.dist-info` folder."""

    name: str
    version: str
    folder: Path


def verify_software(one: Installed, *, imports: bool = False) -> tuple[str, ...]:
    """What is wrong with it, as sentences; empty when it is as it was built. With `imports`, the
    modules of every pinned distribution are imported too, which takes a while."""
    if not one.record:
        return (f"it is {one.state}",)
    problem = _ask_interpreter(one)
    if problem is not None:
        return (problem,)
    if one.record.get("container"):
        return tuple(_against_image(one))
    try:
        lock = read_lock_text((one.path / REQUIREMENTS).read_text(encoding="utf-8"))
    except FileNotFoundError:  # a stack without packages
        lock = LockText(())
    installed = list(_distributions(one.path))
    problems = [*_against_record(installed, one), *_against_pins(installed, lock)]
    for each in installed:
        problems += _against_hashes(each)
    if imports and not problems:
        problems += _failed_imports(one, installed, lock)
    return tuple(problems)


def _ask_interpreter(one: Installed) -> str | None:
    """The interpreter still starts and is of the recorded release; else what is wrong."""
    argv = [
        *python_command(one.path, one.record),
        "-c",
        "import sys; print(sys.version.split()[0])",
    ]
    try:
        done = subprocess.run(
            argv,
            env=variables_for_builds({}),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    except (OSError, subprocess.TimeoutExpired, SoftwareError) as error:
        return f"its interpreter cannot be started: {error}"
    recorded = str(one.record.get("python"))
    if done.returncode != 0:
        return "its interpreter does not work: " + (done.stderr.strip().splitlines() or [""])[-1]
    if done.stdout.strip() != recorded:
        return f"its interpreter is {done.stdout.strip()} and was {recorded} when it was built"
    return None


def _against_image(one: Installed) -> Iterator[str]:
    try:
        found = describe_image(one.path, variables_for_engine({}))
    except ContainerError as error:
        yield str(error)
        return
    if found["versions"] != one.record["versions"]:
        yield "its image has other packages than when it was taken"


def _distributions(directory: Path) -> Iterator[Distribution]:
    for folder in sorted(directory.glob("lib/python3.*/site-packages/*.dist-info")):
        try:
            text = (folder / "METADATA").read_text(encoding="utf-8", errors="replace")
        except OSError:
            yield Distribution(folder.name.split("-")[0], "?", folder)
            continue
        header = HeaderParser().parsestr(text)
        yield Distribution(str(header["Name"]), str(header["Version"]), folder)


def _against_record(installed: Iterable[Distribution], one: Installed) -> Iterator[str]:
    then = {normalised(name): str(version) for name, version in one.record["versions"].items()}
    now = {normalised(each.name): each.version for each in installed if each.name != "pip"}
    for name in sorted(then.keys() | now.keys()):
        if name not in now:
            yield f"{name} {then[name]} was installed and is gone"
        elif name not in then:
            yield f"{name} {now[name]} was added after it was built"
        elif then[name] != now[name]:
            yield f"{name} is {now[name]} and was {then[name]} when it was built"


def _against_pins(installed: Iterable[Distribution], lock: LockText) -> Iterator[str]:
    there = {normalised(each.name) for each in installed}
    for name, line in lock.pins().items():
        if name not in there and ";" not in line:  # a marker may leave it out here
            yield f"{name} is pinned by the lock and is not installed"


def _against_hashes(each: Distribution) -> list[str]:
    """Files that differ from the distribution's RECORD (size and SHA-256)."""
    try:
        record = (each.folder / "RECORD").read_text(encoding="utf-8")
    except OSError:
        return [f"{each.name}: its RECORD is missing"]
    wrong = []
    for row in csv.reader(io.StringIO(record)):
        if len(row) < 2 or not row[1].startswith("sha256=") or "__pycache__/" in row[0]:
            continue  # Python itself writes compiled files anew, also those that a wheel brought
        path = each.folder.parent / row[0]
        try:
            digest = bytes.fromhex(sha256_of(path))
        except OSError:
            wrong.append(f"{each.name}: {row[0]} is missing")
            continue
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != row[1][7:].rstrip("="):
            wrong.append(f"{each.name}: {row[0]} was changed")
    if len(wrong) > _SHOWN:
        wrong[_SHOWN:] = [f"{each.name}: and {len(wrong) - _SHOWN} more files"]
    return wrong


def _failed_imports(one: Installed, installed: Iterable[Distribution], lock: LockText) -> list[str]:
    pinned = lock.pins().keys()
    modules = {m: d.name for d in installed if normalised(d.name) in pinned for m in _modules(d)}
    try:
        done = subprocess.run(
            [*python_command(one.path, one.record), "-c", _IMPORT],
            input=json.dumps(sorted(modules)),
            env={**variables_for_builds({}), "HF_HUB_OFFLINE": "1"},
            capture_output=True,
            text=True,
            check=False,
            timeout=_IMPORT_S,
        )
        wrong = json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        return [f"importing everything took more than {_IMPORT_S:.0f} s"]
    except (ValueError, IndexError):
        return [f"importing everything ended its interpreter (exit {done.returncode})"]
    return [f"{modules[m]}: `import {m}` fails: {why}" for m, why in sorted(wrong.items())]


def _modules(each: Distribution) -> Iterator[str]:
    """Top-level modules of a distribution: from top_level.txt, else from its RECORD."""
    top = each.folder / "top_level.txt"
    if top.is_file():
        names = top.read_text(encoding="utf-8", errors="replace").split()
        yield from (name for name in names if name.isidentifier() and not name.startswith("_"))
        return
    record = each.folder / "RECORD"
    seen = set()
    for row in csv.reader(io.StringIO(record.read_text(encoding="utf-8", errors="replace"))):
        parts = row[0].split("/") if row else []
        name = ""
        if len(parts) == 2 and parts[1] == "__init__.py":
            name = parts[0]
        elif len(parts) == 1 and parts[0].endswith(".py"):
            name = parts[0][:-3]
        if name.isidentifier() and not name.startswith("_") and name not in seen:
            seen.add(name)
            yield name

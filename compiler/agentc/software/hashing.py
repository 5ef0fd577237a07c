"""Puts the hashes of all files that may be installed into a lock, as its package index states them.

`uv pip compile` is asked for exactly the pinned versions, so no version changes; comments, order
and what stands beside the pins stay. `agentc software hash` is the command.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import unquote, urlsplit

import tomllib

from agentc.runtime.software.installer import find_uv
from agentc.runtime.software.lock_text import (
    LockText,
    meets,
    name_of,
    read_lock_text,
    whole_lines,
    without_hashes,
)
from agentc.runtime.store.digests import sha256_of

_PIN = re.compile(r"^\s*[A-Za-z0-9][A-Za-z0-9._-]*\s*(?:\[[^\]]*\])?\s*==\s*([^\s;\\]+)")
_ADDRESS = re.compile(r"^\s*[A-Za-z0-9][A-Za-z0-9._-]*\s*(?:\[[^\]]*\])?\s*@\s*(\S+)")
_HASH = re.compile(r"--hash=(\S+)")
_LOCAL = ("file://", "/", "./", "../")
_OURS = ("any", "x86_64", "aarch64")
_NEWEST = 14
"""The last Python 3 whose wheels are listed, where the lock has no demand of its own."""
_MINORS = range(8, 30)


class HashingError(Exception):
    """The hashes cannot be found; the message says why, and what may help."""


def with_hashes(text: str, files: Iterable[Path] = (), *, directory: Path | None = None) -> str:
    """The lock with the hashes that the index states, those that it has, and those of `files`
    (wheels or sources of packages that it pins). Addresses of files start at `directory`.

    Raises HashingError and LockTextError.
    """
    lock = read_lock_text(text)
    wanted: dict[str, str] = {}
    for line in whole_lines(text):
        pin = _PIN.match(line)
        if pin is not None and name_of(line) not in lock.unverified:
            name, version = name_of(line), pin.group(1)
            if wanted.setdefault(name, version) != version:
                raise HashingError(f"{name} is pinned at {wanted[name]} and at {version}")
    found = _stated(wanted, lock)
    for file in files:
        name = _of_pinned(file, wanted)
        found.setdefault(name, []).append("sha256:" + sha256_of(file))
    return _written(text, lock, found, directory or Path.cwd())


def _written(text: str, lock: LockText, found: Mapping[str, list[str]], directory: Path) -> str:
    lines = []
    for line in whole_lines(text):
        name = name_of(line)
        bare = without_hashes(line)
        if not name or name in lock.unverified or not (_PIN.match(line) or _ADDRESS.match(line)):
            lines.append(line)
            continue
        address = _ADDRESS.match(bare)
        hashes = {*_HASH.findall(line), *found.get(name, ())}
        if address is not None:
            hashes = {"sha256:" + sha256_of(_local(address.group(1), name, directory))}
        if not hashes:
            raise HashingError(f"the package index states no hash for {bare.strip()}")
        lines.append(" \\\n".join([bare, *(f"    --hash={each}" for each in sorted(hashes))]))
    return "\n".join(lines) + "\n"


def _local(address: str, name: str, directory: Path) -> Path:
    place = directory / unquote(urlsplit(address).path)
    if not address.startswith(_LOCAL) or not place.is_file():
        raise HashingError(
            f"{name} comes from {address}: only a file has a hash that can be found here. Write"
            f" `--hash=sha256:...` beside it, or, for a folder or a git revision, the line"
            f" `# agentc: unverified {name}`"
        )
    return place


def _stated(wanted: Mapping[str, str], lock: LockText) -> dict[str, list[str]]:
    """Hashes by name, of files that a Linux machine may take."""
    if not wanted:
        return {}
    program = find_uv()
    if program is None:
        raise HashingError("uv finds the hashes, and it is not installed: `pip install uv`")
    minor = next(n for n in _MINORS if _fits(lock, n))
    with TemporaryDirectory(prefix="agentc-hashes-") as folder:
        asked, answer = Path(folder, "asked.txt"), Path(folder, "pylock.toml")
        pins = [f"{name}=={version}" for name, version in wanted.items()]
        asked.write_text("\n".join([*lock.options, *pins]) + "\n", encoding="utf-8")
        words = ["pip", "compile", "--quiet", "--no-deps", "--universal", "--generate-hashes"]
        # .99: there are packages that refuse the first releases of a Python.
        words += ["--python-version", f"3.{minor}.99", "--format", "pylock.toml"]
        done = subprocess.run(
            [program, *words, "--output-file", str(answer), str(asked)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise HashingError(f"uv cannot find them: {done.stderr.strip()}")
        packages = tomllib.loads(answer.read_text(encoding="utf-8")).get("packages", ())
    return {each["name"]: list(_hashes_of(each, lock)) for each in packages}


def _hashes_of(package: Mapping[str, Any], lock: LockText) -> Iterator[str]:
    for wheel in package.get("wheels", ()):
        name = wheel.get("name") or unquote(urlsplit(wheel["url"]).path).rsplit("/", 1)[-1]
        if _usable(name, lock):
            yield "sha256:" + wheel["hashes"]["sha256"]
    for source in ("sdist", "archive"):
        if source in package:
            yield "sha256:" + package[source]["hashes"]["sha256"]


def _usable(wheel: str, lock: LockText) -> bool:
    """Whether a Linux machine with a Python that the lock takes may install it."""
    pythons, abis, platforms = wheel.removesuffix(".whl").split("-")[-3:]
    if not platforms.endswith(_OURS) or "musllinux" in platforms or "macosx" in platforms:
        return False
    return any(_python_fits(python, abis, lock) for python in pythons.split("."))


def _python_fits(python: str, abis: str, lock: LockText) -> bool:
    match = re.fullmatch(r"(cp|py)3(\d*)", python)
    if match is None or re.fullmatch(r"cp3\d+t", abis):
        return False
    if abis in ("none", "abi3") or not match.group(2):
        return True
    return _fits(lock, int(match.group(2)))


def _fits(lock: LockText, minor: int) -> bool:
    if lock.python is None:
        return 11 <= minor <= _NEWEST
    return meets(lock.python, (3, minor))


def _of_pinned(file: Path, wanted: Mapping[str, str]) -> str:
    name, _, rest = file.name.partition("-")
    version = rest.removesuffix(".tar.gz").split("-")[0].split("+")[0]
    name = re.sub(r"[-_.]+", "-", name).lower()
    if wanted.get(name, "").split("+")[0] != version:
        raise HashingError(f"the lock does not pin {name}=={version}, which {file} is")
    return name

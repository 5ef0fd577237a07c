"""How uv is started to install the pins of a lock, and what to say when it fails.

Exact pins without dependencies, every file by its hash, the indexes, proxies and certificates of
pip's configuration (`pip_settings.py`), files that are copied and compiled.
"""

from __future__ import annotations

import os
import re
import shutil
import ssl
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agentc.runtime.software.interpreter import packaging_modules
from agentc.runtime.software.job_software import SoftwareError
from agentc.runtime.software.lock_text import LockText, normalised
from agentc.runtime.software.pip_settings import pip_settings, uv_options
from agentc.runtime.software.variables import variables_for_builds

_COMMENT = re.compile(r"(^|\s)#.*$")
_EXACT = re.compile(r"==\s*([^\s;]+)")


def all_fulfilled(files: Iterable[str], pins: Mapping[str, str]) -> bool:
    """Whether each pin (a line of a lock by normalised name) is among what the files allow; False
    as well where that cannot be read: a file of another place, an option, an address."""
    for file in files:
        demands = _read(file)
        if demands is None:
            return False
        for demand in demands:
            pin = pins.get(normalised(demand.name))
            if pin is None:
                continue
            exact = _EXACT.search(pin)
            if exact is None or demand.url is not None:
                return False
            if not demand.specifier.contains(exact.group(1), prereleases=True):
                return False
    return True


def _read(file: str) -> list[Any] | None:
    """The demands in a file of constraints; None where one is not a name and versions."""
    try:
        reader, _ = packaging_modules()
        lines = Path(file).read_text(encoding="utf-8").splitlines()
        stripped = [_COMMENT.sub("", line).strip() for line in lines]
        return [reader.Requirement(line) for line in stripped if line]
    except (OSError, ValueError, SoftwareError):
        return None  # packaging's InvalidRequirement is a ValueError


_OLDEST_UV = (0, 5)
_NO_HASH = re.compile(r"no hashes were provided or computed for: ([\w.-]+)==([^+\s]+)(\+[\w.]+)")
_MISMATCH = re.compile(r"[Hh]ash mismatch for `([\w.-]+)==([^+`]+)(\+[\w.]+)`")


class Installer(NamedTuple):
    """`install` are the words that an installation begins with, `variables` what it is given."""

    install: tuple[str, ...]
    variables: Mapping[str, str] = {}


def choose_installer(python: str, lock: LockText) -> Installer:
    """uv, started so that it installs for this interpreter with the settings of pip's
    configuration. Raises SoftwareError where uv is missing or too old, or a setting of pip's has no
    counterpart."""
    program = find_uv()
    if program is None:
        raise SoftwareError(
            "software is installed by uv, which is neither beside this Python "
            f"({sys.executable}) nor on PATH\nhelp: {sys.executable} -m pip install uv"
        )
    version = _version_of(program)
    if version < _OLDEST_UV:
        raise SoftwareError(
            f"{program} is not a uv of version {_version_text(_OLDEST_UV)} or newer\nhelp: "
            f"{sys.executable} -m pip install --upgrade uv"
        )
    environ = variables_for_builds({})
    settings = pip_settings(environ)
    constraints = settings.pop("constraint", "").split()
    if not all_fulfilled(constraints, {**lock.pins(), **lock.if_asked}):
        raise SoftwareError(
            f"pip's constraints ({' '.join(constraints)}) allow not every pin of the lock, or "
            "cannot be read\nhelp: unset PIP_CONSTRAINT for agentc, or give it a file that allows "
            "them"
        )
    words, variables = uv_options(settings, environ)
    install = [program, "pip", "install", "--python", python, "--no-progress"]
    # As pip does it: the best of all indexes (hashes say which file), copies, compiled.
    install += ["--index-strategy", "unsafe-best-match", "--link-mode", "copy"]
    install += ["--compile-bytecode", *words]
    for file in constraints:
        install += ["--build-constraints", file]  # of the pins, they would ask for hashes
    # The machine's certificates too, as pip trusts them: a site's own are among them.
    trust = "UV_SYSTEM_CERTS" if version >= _SYSTEM_CERTS else "UV_NATIVE_TLS"
    if _has_certificates():
        variables = {trust: "1", **variables}
    return Installer(tuple(install), variables)


def find_uv() -> str | None:
    """uv beside this interpreter, where pip puts programs for it, or on PATH."""
    for folder in (Path(sys.executable).parent, Path(sysconfig.get_path("scripts")), _USER_SCRIPTS):
        if os.access(str(folder / "uv"), os.X_OK):
            return str(folder / "uv")
    return shutil.which("uv")


_USER_SCRIPTS = Path(sysconfig.get_path("scripts", "posix_user"))
_SYSTEM_CERTS = (0, 11)


def _version_of(program: str) -> tuple[int, ...]:
    try:
        done = subprocess.run(
            [program, "--version"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=variables_for_builds({}),
            check=False,
        )
    except OSError:
        return ()
    numbers = re.findall(rb"\d+", done.stdout)[:2]
    return tuple(map(int, numbers)) if done.stdout.startswith(b"uv ") else ()


def _version_text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def _has_certificates() -> bool:
    places = ssl.get_default_verify_paths()
    return bool(places.cafile or (places.capath and any(Path(places.capath).iterdir())))


def with_local_version(requirements: str, failed: Iterable[str]) -> str | None:
    """The requirements with the local part in the version that uv could not check, None where its
    words are of something else. The pin `torch==2.13.0` allows `2.13.0+cpu`, and may name its hash,
    but uv looks for hashes by a file's whole version."""
    for line in failed:
        match = _NO_HASH.search(line)
        if match is not None:
            name, version, local = match.groups()
            pin = re.compile(
                rf"^({_any_spelling(name)}=={re.escape(version)})(?![\w.+])", re.M | re.I
            )
            exact = pin.sub(r"\g<1>" + local, requirements)
            return None if exact == requirements else exact
    return None


def refused_build(failed: Iterable[str]) -> tuple[str, str, str] | None:
    """Name, version and local part of a build whose hash the lock does not name."""
    found = (_MISMATCH.search(line) for line in failed)
    return next(((m[1], m[2], m[3]) for m in found if m is not None), None)


def without_local_version(requirements: str, build: tuple[str, str, str]) -> str | None:
    """The requirements so that uv leaves this build out; None where they are so already. In uv
    `===` is the version without a local part alone."""
    name, version, local = build
    pin = rf"^({_any_spelling(name)})==({re.escape(version)}){re.escape(local)}(?![\w.+])"
    strict = re.sub(pin, r"\1===\2", requirements, flags=re.MULTILINE | re.IGNORECASE)
    return None if strict == requirements else strict


def _any_spelling(name: str) -> str:
    """Any spelling of a distribution's name (PEP 503)."""
    return "[-_.]+".join(map(re.escape, re.split(r"[-_.]+", name)))


_LAST = 20
_FULL = ("no space left on device", "errno 28", "disk quota exceeded", "errno 122")
_OFFLINE = (
    "temporary failure in name resolution", "name or service not known", "newconnectionerror",
    "failed to establish a new connection", "network is unreachable", "connecttimeouterror",
    "connection refused", "nameresolutionerror", "cannot connect to proxy", "proxyerror",
    "read timed out", "no address associated with hostname", "dns error", "error sending request",
    "network connectivity is disabled", "tcp connect error",
)  # fmt: skip
_NO_VENV = "no module named venv"
_COMPILER = ("command 'gcc' failed", "command 'cc' failed", "command 'g++' failed",
             "no such file or directory: 'gcc'", "python.h: no such file", "unable to find a comp",
             "no such file or directory: 'g++'", "no such file or directory: 'cc'")  # fmt: skip


def explain_failure(lines: Sequence[str], directory: Path) -> str:
    """The message for people about a build in `directory` that ended with these lines."""
    found = _cause("\n".join(lines), directory)
    tail = ["  | " + line for line in lines[-_LAST:]]
    return "\n".join([*found, *tail])


def _cause(text: str, directory: Path) -> list[str]:
    low = text.lower()
    if _any(_FULL, low):
        return [
            f"the disk is full: {_left(directory)} is left for {directory.parent}",
            "help: free some space, or keep software stacks on another disk:"
            " export AGENTC_SOFTWARE=/somewhere/else",
        ]
    if _any(_OFFLINE, low):
        return [
            "the package index cannot be reached from this machine",
            "help: build it where there is a network and the same folder"
            " (`agentc software sync SPEC` on a cluster's login node), or name a mirror:"
            " export PIP_INDEX_URL=https://... (PIP_FIND_LINKS=/folder for downloaded wheels)",
        ]
    if _NO_VENV in low:
        return [
            "this Python cannot make virtual environments: its module venv is missing",
            "help: on Debian and Ubuntu `apt install python3-venv` (pythonX.Y-venv for another"
            " version)",
        ]
    match = re.search(r"package '?([^\s']+)'? requires a different python: (\S+) not in '([^']+)'",
                      low)  # fmt: skip
    if match:
        return [
            "{} does not take Python {}: it requests {}".format(*match.groups()),
            "help: the lock may demand another interpreter (`# agentc: python 3.10`) or take the"
            " package all the same (`# agentc: then --ignore-requires-python` before its line)",
        ]
    match = re.search(r"(?:there is no version of|no versions of) ([^\s,]+)", text) or re.search(
        r"because (\S+) (?:has no wheels with a matching|was not found in)", text, re.IGNORECASE
    )
    if match:
        return [
            f"the package index has no {match.group(1)} for this Python and platform",
            "help: choose a version that it has, or an interpreter that the package was built for;"
            " is PIP_INDEX_URL right?",
        ]
    if "do not match the hashes" in low or "hash mismatch for" in low:
        return [
            f"{_named_by_hash(text)} is not the file that the lock names by its hash",
            "help: where it comes from your own index or build, `agentc software hash LOCK --file"
            " FILE` adds its hash to your own lock (`software:` in a spec); else it has been"
            " altered: use it for nothing",
        ]
    if "hashes are required" in low or "hash for all requirements" in low:
        return [
            "the lock lacks the hash of something that it names",
            "help: `agentc software hash LOCK` adds the hashes that its package index states",
        ]
    if _any(_COMPILER, low):
        return [
            "a package has to be built from source, and this machine has no compiler for it",
            "help: on Debian and Ubuntu `apt install build-essential python3-dev`",
        ]
    if "no module named 'torch'" in low or "modulenotfounderror" in low:
        return [
            "a package that is built from source needs another one to be there before it",
            "help: in the lock, put it below a line `# agentc: then --no-build-isolation`",
        ]
    if "permission denied" in low or "read-only file system" in low:
        return [
            f"{directory.parent} cannot be written to",
            "help: export AGENTC_SOFTWARE=/a/folder/of/yours",
        ]
    return ["the installation failed; its last lines:"]


def _named_by_hash(text: str) -> str:
    match = re.search(r"^\s*(\S+==\S+|\S+ @ \S+).* from (?:file|http)\S*", text, re.MULTILINE)
    match = match or re.search(r"[Hh]ash mismatch for `([^`]+)`", text)
    return "a downloaded file" if match is None else match.group(1)


def _any(signs: Sequence[str], text: str) -> bool:
    return any(sign in text for sign in signs)


def _left(directory: Path) -> str:
    for place in (directory, *directory.parents):
        if place.exists():
            return f"{shutil.disk_usage(str(place)).free / 1000000.0:.1f} MB"
    return "nothing"

"""The program that installs into a stack, and what to say when it fails.

It is uv where there is one that gives the same result as pip: exact pins without dependencies,
every file by its hash, the indexes of pip's own settings, files that are copied and compiled. What
uv cannot be told is left to pip.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agentc.runtime.software.interpreter import packaging_modules
from agentc.runtime.software.job_software import SoftwareError
from agentc.runtime.software.lock_text import LockText, normalised
from agentc.runtime.software.variables import variables_for_pip

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


INSTALLER_VARIABLE = "AGENTC_INSTALLER"
"""`pip` leaves uv out."""
_OLDEST_UV = (0, 5)
_NO_MATTER = frozenset(
    ("disable-pip-version-check", "no-input", "progress-bar", "quiet", "verbose", "no-color",
     "no-warn-script-location", "config-file", "cache-dir", "root-user-action",
     "break-system-packages")
)  # fmt: skip
_PER_ADDRESS = {
    "index-url": "--default-index",
    "extra-index-url": "--index",
    "find-links": "--find-links",
    "trusted-host": "--allow-insecure-host",
}
_AS_VARIABLE = {
    "cert": "SSL_CERT_FILE",
    "retries": "UV_HTTP_RETRIES",
    "timeout": "UV_HTTP_TIMEOUT",
    "default-timeout": "UV_HTTP_TIMEOUT",
}
_NO_HASH = re.compile(r"no hashes were provided or computed for: ([\w.-]+)==([^+\s]+)(\+[\w.]+)")
_SETTING = re.compile(r"^([\w-]+|:env:)\.([\w-]+)=(.*)$")


class Installer(NamedTuple):
    """`install` are the words that an installation begins with, `variables` what it is given;
    `otherwise` is asked where it takes no file that a lock allows."""

    name: str
    install: tuple[str, ...]
    variables: Mapping[str, str] = {}
    otherwise: Installer | None = None


def choose_uv(python: str, lock: LockText) -> Installer | None:
    """uv, told to install for this interpreter; None where there is none, or where
    the lock or pip's settings ask for what only pip does."""
    program = None if os.environ.get(INSTALLER_VARIABLE) == "pip" else find_uv()
    if program is None or any(step.ignore_requires_python for step in lock.steps):
        return None
    settings = settings_of_pip()
    if settings is None or not _is_new_enough(program):
        return None
    constraints = settings.pop("constraint", "").split()
    told = _words_for_uv(settings)
    if told is None or not all_fulfilled(constraints, {**lock.pins(), **lock.if_asked}):
        return None
    words, variables = told
    install = [program, "pip", "install", "--python", python, "--no-config", "--no-progress"]
    # As pip does it: the best of all indexes (hashes say which file), copies, compiled.
    install += ["--index-strategy", "unsafe-best-match", "--link-mode", "copy"]
    install += ["--compile-bytecode", *words]
    for file in constraints:
        install += ["--build-constraints", file]  # of the pins, they would ask for hashes
    return Installer("uv", tuple(install), variables)


def find_uv() -> str | None:
    """uv beside this interpreter or on PATH."""
    beside = Path(sys.executable).with_name("uv")
    return str(beside) if os.access(str(beside), os.X_OK) else shutil.which("uv")


def _is_new_enough(program: str) -> bool:
    try:
        done = subprocess.run(
            [program, "--version"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=variables_for_pip({}),
            check=False,
        )
    except OSError:
        return False
    numbers = re.findall(rb"\d+", done.stdout)[:2]
    return done.returncode == 0 and tuple(map(int, numbers)) >= _OLDEST_UV


def settings_of_pip() -> dict[str, str] | None:
    """pip's configuration and its variables, as pip reads them: uv reads neither. None where this
    interpreter has no pip to ask."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=variables_for_pip({}),
        check=False,
    )
    if done.returncode != 0:
        return None
    sections: dict[str, dict[str, str]] = {"global": {}, "install": {}, ":env:": {}}
    for line in done.stdout.decode("utf-8", "replace").splitlines():
        match = _SETTING.match(line)
        if match is None:
            return None
        if match.group(1) in sections:
            sections[match.group(1)][match.group(2)] = str(ast.literal_eval(match.group(3)))
    # As pip has it: a variable before what is said for `install`, that before what is for all.
    return {**sections["global"], **sections["install"], **sections[":env:"]}


def _words_for_uv(settings: Mapping[str, str]) -> tuple[list[str], dict[str, str]] | None:
    """The same for uv: words and variables; None for a setting that it does not have."""
    words: list[str] = []
    variables = {}
    for name, value in settings.items():
        if name in _PER_ADDRESS:
            for address in value.split():
                words += [_PER_ADDRESS[name], address]
        elif name == "no-index":
            words += ["--no-index"] if value.lower() in ("1", "true", "yes", "on") else []
        elif name == "cert" and os.environ.get("SSL_CERT_FILE", value) != value:
            return None  # build scripts would see pip's in the place of the shell's
        elif name in _AS_VARIABLE:
            variables[_AS_VARIABLE[name]] = value
        elif name not in _NO_MATTER:
            return None
    return words, variables


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
_NO_VENV = ("ensurepip is not available", "no module named ensurepip", "no module named venv")
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
    if _any(_NO_VENV, low):
        return [
            "this Python cannot make software: its module ensurepip is missing",
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
    match = re.search(r"no matching distribution found for (\S+)", text, re.IGNORECASE)
    if match:
        if "(from versions: none)" in low:
            return [
                f"the package index has no version of {match.group(1)} for this Python and "
                "platform, or it"
                " cannot be reached",
                "help: is PIP_INDEX_URL right, and is there a network?",
            ]
        return [
            f"the package index has no {match.group(1)} for this Python and platform",
            "help: choose a version that it has, or an interpreter that the package was built for",
        ]
    match = re.search(r"(?:there is no version of|no versions of) ([^\s,]+)", text) or re.search(
        r"because (\S+) has no wheels with a matching", text, re.IGNORECASE
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

"""The program that installs into an environment: uv where there is one that gives the same result,
pip otherwise. `installation.py` is the user.

The same result: exact pins without dependencies, every file held to its hash, the indexes of pip's
own settings, files that are copied and compiled. What uv cannot be told is left to pip.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from agentc.runtime.software.build_variables import variables_for_pip
from agentc.runtime.software.constraints import all_fulfilled
from agentc.runtime.software.lock_text import LockText

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
    """uv, told to install into this interpreter's environment; None where there is none, or where
    the lock or pip's settings ask for what only pip does."""
    program = None if os.environ.get(INSTALLER_VARIABLE) == "pip" else find_uv()
    if program is None or any(step.ignore_requires_python for step in lock.steps):
        return None
    settings = _settings_of_pip()
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


def _settings_of_pip() -> dict[str, str] | None:
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

"""What a software environment's lock says besides its pins: lines that begin with `# agentc:`.

They are part of the lock's text, so its digest covers them (`lock_hashes.py`). `installation.py`
obeys them, and `docs/software_environments.md` shows each one.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import NamedTuple

from agentc.runtime.software.lock_hashes import (
    lacking_hashes,
    name_of,
    requirements,
    without_hashes,
)

_DIRECTIVE = re.compile(r"^#\s*agentc:\s*(.*?)\s*$")
_PIN = re.compile(r"^\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*(?:==|@)")
_CLAUSE = re.compile(r"^(==|>=|<=|<|>|!=)?\s*(\d+)\.(\d+)$")
_VARIABLE = re.compile(r"^([A-Za-z_][A-Za-z0-9_]*)=(.*)$")
_IMAGE = re.compile(r"^(?:docker|oras)://[^\s@]+@sha256:[0-9a-f]{64}$")
_FILE = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
_WORDS = ("container", "if-asked", "partial", "python", "then", "unverified", "without")


class LockTextError(Exception):
    """A line of the lock that cannot be obeyed; the message names it."""


class InstallStep(NamedTuple):
    """One installation with `--no-deps`: `text` are its requirements; `variables` are set for
    packages that are built from source."""

    text: str
    build_isolation: bool = True
    ignore_requires_python: bool = False
    variables: Mapping[str, str] = {}


class Container(NamedTuple):
    """An image that brings all packages. `source` is an address with a digest, to be pulled, or
    the name of a file with the digest `sha256`."""

    source: str
    sha256: str | None = None

    @property
    def pulled(self) -> bool:
        """Whether it comes from a registry."""
        return self.sha256 is None


class LockText(NamedTuple):
    """A lock, read. `python` is the demand on the interpreter or None; `without` are names
    (normalised) that are left out on purpose; a `partial` lock is completed by `if_asked` alone.
    `options` are pip's (`--extra-index-url ...`); they stand in the text of every step too.
    `if_asked` are requirements by name, installed where a package asks for one; `unverified` are
    names that need no hash, `unhashed` those that need one and have none."""

    steps: tuple[InstallStep, ...]
    python: str | None = None
    partial: bool = False
    without: frozenset[str] = frozenset()
    options: tuple[str, ...] = ()
    container: Container | None = None
    unverified: frozenset[str] = frozenset()
    unhashed: tuple[str, ...] = ()
    if_asked: Mapping[str, str] = {}

    def pins(self) -> dict[str, str]:
        """The line of every pinned distribution, by normalised name."""
        found = {}
        for step in self.steps:
            for line in requirements(step.text):
                match = _PIN.match(line)
                if match:
                    found[normalised(match.group(1))] = without_hashes(line).strip()
        return found


def read_lock_text(text: str) -> LockText:
    """Read a lock. Raises LockTextError for a directive that is not known or makes no sense."""
    python: str | None = None
    container: Container | None = None
    partial = False
    without: list[str] = []
    unverified: list[str] = []
    options: list[str] = []
    asked: list[str] | None = None
    begun: list[tuple[InstallStep, list[str]]] = [(InstallStep(""), [])]
    continued = False
    for number, line in enumerate(text.splitlines(), 1):
        match = _DIRECTIVE.match(line)
        if match is None:
            # Options of pip (`--extra-index-url`) hold for the whole file.
            into = begun[-1][1] if asked is None else asked
            if line.startswith("--") and not continued:
                into = options
            into.append(line)
            continued = line.endswith("\\")
            continue
        word, _, rest = match.group(1).partition(" ")
        try:
            if asked is not None:
                raise LockTextError("nothing but requirements may follow `# agentc: if-asked`")
            if word == "python":
                if python is not None:
                    raise LockTextError("the interpreter is demanded twice")
                python = rest.strip()
                check_demand(python)
            elif word == "container":
                if container is not None:
                    raise LockTextError("the container is named twice")
                container = _read_container(rest.split())
            elif word == "partial":
                partial = True
            elif word == "without":
                without += [normalised(name) for name in rest.replace(",", " ").split()]
            elif word == "unverified":
                unverified += [normalised(name) for name in rest.replace(",", " ").split()]
            elif word == "if-asked" and not rest:
                asked = []
            elif word == "then":
                begun.append((_read_step(rest), []))
            else:
                raise LockTextError(f"known are: {', '.join(_WORDS)}")
        except LockTextError as error:
            raise LockTextError(f"line {number}, `{line.strip()}`: {error}") from None
    steps = tuple(
        step._replace(text="\n".join([*options, *lines]) + "\n")
        for step, lines in begun
        if any(line.strip() and not line.lstrip().startswith("#") for line in lines)
    )
    if container is not None and (steps or python or without):
        raise LockTextError("an image brings its Python and packages: nothing may stand beside it")
    free = frozenset(unverified)
    return LockText(
        steps,
        python,
        partial,
        frozenset(without),
        tuple(options),
        container,
        free,
        lacking_hashes(text, free),
        {name_of(line): line.strip() for line in requirements("\n".join(asked or ()))},
    )


def normalised(name: str) -> str:
    """A distribution's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def check_demand(demand: str) -> None:
    """Raise LockTextError unless it is a minor version (`3.10`) or a range (`>=3.8,<3.11`)."""
    for clause in demand.split(","):
        if not _CLAUSE.match(clause.strip()):
            raise LockTextError(
                "expected a Python version such as 3.10, or a range such as >=3.8,<3.11"
            )


def meets(demand: str, version: tuple[int, int]) -> bool:
    """Whether a Python version (major, minor) meets a demand."""
    for clause in demand.split(","):
        match = _CLAUSE.match(clause.strip())
        assert match is not None, demand
        bound = (int(match.group(2)), int(match.group(3)))
        sign = match.group(1) or "=="
        met = {
            "==": version == bound,
            "!=": version != bound,
            ">=": version >= bound,
            "<=": version <= bound,
            ">": version > bound,
            "<": version < bound,
        }[sign]
        if not met:
            return False
    return True


def _read_container(words: list[str]) -> Container:
    if len(words) == 1 and _IMAGE.match(words[0]):
        return Container(words[0])
    if len(words) == 2 and _FILE.match(words[0]) and re.match(r"^sha256:[0-9a-f]{64}$", words[1]):
        return Container(words[0], words[1][7:])
    raise LockTextError(
        "expected docker://NAME@sha256:DIGEST (or oras://), or FILE.sif sha256:DIGEST; a tag alone"
        " may mean another image tomorrow"
    )


def _read_step(rest: str) -> InstallStep:
    step = InstallStep("")
    variables: dict[str, str] = {}
    try:
        words = shlex.split(rest)
    except ValueError as error:
        raise LockTextError(str(error)) from None
    for word in words:
        match = _VARIABLE.match(word)
        if word == "--no-build-isolation":
            step = step._replace(build_isolation=False)
        elif word == "--ignore-requires-python":
            step = step._replace(ignore_requires_python=True)
        elif match:
            variables[match.group(1)] = match.group(2)
        else:
            raise LockTextError(
                "`then` takes --no-build-isolation, --ignore-requires-python and NAME=VALUE"
            )
    return step._replace(variables=variables)

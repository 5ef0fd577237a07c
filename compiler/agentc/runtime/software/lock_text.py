"""The lock of a software stack: pins with hashes, lines that begin with `# agentc:`, and the
digest that names what is installed.

The digest leaves out the hashes of `name==version`: an index gives no other files for a version,
hashes of further platforms change nothing, and a file that is not among them is refused while it
is installed. An address (`name @ ...`) says nothing of its content: its hash counts.
docs/software.md shows each `# agentc:` line.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

IF_ASKED = re.compile(r"^#\s*agentc:\s*if-asked\s*$", re.MULTILINE)
"""From here on: what is installed only where this platform's packages ask for it. Which they are
follows from the pins above, so the digest covers what stands before."""
_HASH = re.compile(
    r"\s*--hash=(?:sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128})(?=\s|$)"
)
_HASH_OF_ANY_FORM = re.compile(r"\s*--hash[= ]\S+")
_NAME = re.compile(r"^\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
_ADDRESS = re.compile(r"^\s*[A-Za-z0-9][A-Za-z0-9._-]*\s*(?:\[[^\]]*\])?\s*@")


def whole_lines(text: str) -> Iterator[str]:
    """Its lines, those that end in a backslash joined with what follows them."""
    begun: list[str] = []
    for line in text.splitlines():
        if line.endswith("\\") and not line.lstrip().startswith("#"):
            begun.append(line[:-1])
            continue
        yield "".join([*begun, line])
        begun = []
    if begun:
        yield "".join(begun)


def without_hashes(line: str) -> str:
    """A requirement as it is written without hashes."""
    return _HASH_OF_ANY_FORM.sub("", line).rstrip()


@lru_cache(maxsize=64)
def lock_digest(text: str) -> str:
    """The identity of the stack that a lock describes, in hexadecimal."""
    found = IF_ASKED.search(text)
    covered = text if found is None else text[: found.start()]
    if "--hash" in covered:
        lines = [
            without_hashes(line) if "--hash" in line and not _ADDRESS.match(line) else line
            for line in whole_lines(covered)
        ]
        covered = "\n".join(lines) + "\n"
    return hashlib.sha256(covered.encode("utf-8")).hexdigest()


def name_of(line: str) -> str:
    """The name of the distribution that a requirement asks for, normalised (PEP 503)."""
    match = _NAME.match(line)
    return "" if match is None else re.sub(r"[-_.]+", "-", match.group(1)).lower()


def requirements(text: str) -> Iterator[str]:
    """The requirements among its lines: no comments, no options of pip."""
    for line in whole_lines(text):
        if line.strip() and not line.lstrip().startswith(("#", "-")):
            yield line


def packages_without_hashes(text: str, unverified: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """The packages without a hash that pip would accept, but for those that the lock calls
    unverified. A lock that is a container has none."""
    return tuple(
        name_of(line)
        for line in requirements(text)
        if not _HASH.search(line) and name_of(line) not in unverified
    )


def enumerate_names(names: Sequence[str]) -> str:
    """The first few of them, and how many more there are."""
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more


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
    reader = _LockReader()
    for number, line in enumerate(text.splitlines(), 1):
        match = _DIRECTIVE.match(line)
        if match is None:
            reader.add_requirement(line)
            continue
        word, _, rest = match.group(1).partition(" ")
        try:
            reader.add_directive(word, rest)
        except LockTextError as error:
            raise LockTextError(f"line {number}, `{line.strip()}`: {error}") from None
    steps = reader.install_steps()
    if reader.container is not None and (steps or reader.python or reader.without):
        raise LockTextError("an image brings its Python and packages: nothing may be beside it")
    unverified = frozenset(reader.unverified)
    return LockText(
        steps,
        reader.python,
        reader.partial,
        frozenset(reader.without),
        tuple(reader.options),
        reader.container,
        unverified,
        packages_without_hashes(text, unverified),
        {name_of(line): line.strip() for line in requirements("\n".join(reader.if_asked or ()))},
    )


class _LockReader:
    """What a lock has said up to a line."""

    def __init__(self) -> None:
        self.python: str | None = None
        self.container: Container | None = None
        self.partial = False
        self.without: list[str] = []
        self.unverified: list[str] = []
        self.options: list[str] = []
        self.if_asked: list[str] | None = None
        self._steps: list[tuple[InstallStep, list[str]]] = [(InstallStep(""), [])]
        self._continued = False

    def add_requirement(self, line: str) -> None:
        """A line that is no directive: of pip's options, or of the requirements of a step."""
        lines = self._steps[-1][1] if self.if_asked is None else self.if_asked
        # Options of pip (`--extra-index-url`) hold for the whole file.
        if line.startswith("--") and not self._continued:
            lines = self.options
        lines.append(line)
        self._continued = line.endswith("\\")

    def add_directive(self, word: str, rest: str) -> None:
        """`# agentc: WORD REST`."""
        if self.if_asked is not None:
            raise LockTextError("nothing but requirements may follow `# agentc: if-asked`")
        if word == "python":
            if self.python is not None:
                raise LockTextError("the interpreter is demanded twice")
            self.python = rest.strip()
            check_demand(self.python)
        elif word == "container":
            if self.container is not None:
                raise LockTextError("the container is named twice")
            self.container = _read_container(rest.split())
        elif word == "partial":
            self.partial = True
        elif word == "without":
            self.without += _names_in(rest)
        elif word == "unverified":
            self.unverified += _names_in(rest)
        elif word == "if-asked" and not rest:
            self.if_asked = []
        elif word == "then":
            self._steps.append((_read_step(rest), []))
        else:
            raise LockTextError(f"known are: {', '.join(_WORDS)}")

    def install_steps(self) -> tuple[InstallStep, ...]:
        """The steps that install something, with pip's options before their requirements."""
        return tuple(
            step._replace(text="\n".join([*self.options, *lines]) + "\n")
            for step, lines in self._steps
            if any(line.strip() and not line.lstrip().startswith("#") for line in lines)
        )


def _names_in(rest: str) -> list[str]:
    """Names of distributions, separated by commas or spaces."""
    return [normalised(name) for name in rest.replace(",", " ").split()]


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
        "expected docker://NAME@sha256:DIGEST (or oras://), or FILE.sif sha256:DIGEST; a bare tag"
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

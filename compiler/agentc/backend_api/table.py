"""BackendTable: every backend found through the entry-point group `agentc.backends`.

Made once by the command line and passed by argument; there is no global registry. A backend is
imported when a spec names it, so that a spec pays for those it names and no others.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from typing import Literal

from agentc.backend_api.declare import (
    Backend,
    EnvironmentBackend,
    ServerBackend,
    StageBackend,
)
from agentc.ir.module import ALGORITHM
from agentc.kinds.field import Field, Json
from agentc.kinds.kind import Kind


@dataclass(frozen=True, slots=True)
class Announcement:
    """`name = value` of a distribution's entry_points.txt; `value` is `module:attribute`."""

    name: str
    value: str
    metadata: Path
    """The distribution's folder of metadata: `acme-1.2.dist-info`."""

    def load(self) -> object:
        """What it means. Raises whatever the module raises, or AttributeError."""
        module, _, attribute = self.value.partition("[")[0].partition(":")
        names = filter(None, attribute.strip().split("."))
        return reduce(getattr, names, import_module(module.strip()))

    @property
    def owner(self) -> str:
        """Name and version of the distribution, as the headers of its metadata say them."""
        for file in ("METADATA", "PKG-INFO"):
            lines = _lines(self.metadata / file)
            headers = dict(line.partition(": ")[::2] for line in takewhile(bool, lines))
            if {"Name", "Version"} <= headers.keys():
                return f"{headers['Name']} {headers['Version']}"
        return self.metadata.name


def announced(group: str) -> list[Announcement]:
    """All of a group, by name. Of two installations of one distribution the first on the path
    counts, which is the one that Python imports."""
    found: dict[str, list[Announcement]] = {}
    for folder in dict.fromkeys(sys.path):
        for metadata in _metadata_of(Path(folder)):
            # `acme.agents-1.2.dist-info` and `acme_agents-1.1.dist-info` are one distribution.
            name = re.sub("[-_.]+", "-", metadata.stem.partition("-")[0]).lower()
            if name not in found:
                found[name] = list(_read(metadata, group))
    announcements = (each for listed in found.values() for each in listed)
    return sorted(announcements, key=lambda each: (each.name, each.value))


def _metadata_of(folder: Path) -> list[Path]:
    try:
        inside = sorted(folder.iterdir())
    except OSError:
        return []
    return [path for path in inside if path.name.endswith((".dist-info", ".egg-info"))]


def _read(metadata: Path, group: str) -> Iterator[Announcement]:
    section = ""
    for line in _lines(metadata / "entry_points.txt"):
        if line.startswith("["):
            section = line.strip("[]").strip()
        elif section == group and "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            yield Announcement(name.strip(), value.strip(), metadata)


def _lines(file: Path) -> list[str]:
    try:
        return [line.strip() for line in file.read_text("utf-8").splitlines()]
    except (OSError, ValueError):
        return []


GROUP = "agentc.backends"
_ENVIRONMENT, _SERVER = "env", "serve"


@dataclass(frozen=True, slots=True)
class BackendTable:
    """Backends by id (`trl.sft`, `env.textcraft`, `serve.vllm`), sorted. `broken` are sentences
    about entry points that give no usable backend, of those that were asked for until now."""

    backends: Mapping[str, Backend]
    broken: Sequence[str] = ()

    def stage_backends(self, kind: str) -> tuple[StageBackend, ...]:
        """Those that do the work of a stage kind, by id."""
        return tuple(b for b in self._of(kind) if isinstance(b, StageBackend) and b.kind == kind)

    def implementing(self, kind: str, algorithm: str | None) -> tuple[StageBackend, ...]:
        """Those of a stage kind that implement an algorithm; all where it is None."""
        return tuple(each for each in self.stage_backends(kind) if each.implements(algorithm))

    def algorithms(self, kind: str) -> tuple[str, ...]:
        """Those that backends of a stage kind implement, sorted."""
        return tuple(sorted({a for each in self.stage_backends(kind) for a in each.algorithms}))

    def fields_of(self, kind: Kind) -> tuple[Field, ...]:
        """The settings of a kind; `algorithm` is one of those that are implemented."""
        words: list[Json] = [*self.algorithms(kind.name)] if kind.has(ALGORITHM) else []
        return tuple(
            replace(each, schema={"enum": words}) if each.name == ALGORITHM else each
            for each in kind.fields
        )

    def environments(self) -> tuple[EnvironmentBackend, ...]:
        """Those that serve tasks, by id."""
        return tuple(b for b in self._of(_ENVIRONMENT) if isinstance(b, EnvironmentBackend))

    def servers(self) -> tuple[ServerBackend, ...]:
        """Those that serve checkpoints, by id."""
        return tuple(b for b in self._of(_SERVER) if isinstance(b, ServerBackend))

    def resources(
        self, section: Literal["environment", "server"]
    ) -> tuple[EnvironmentBackend, ...] | tuple[ServerBackend, ...]:
        """Those that an entry of `environments:` or of `servers:` may name."""
        return self.environments() if section == "environment" else self.servers()

    def find(self, name: str, family: str) -> Backend | None:
        """The backend a spec means by `name` for a stage kind, or for "env" or "serve":
        a full id (`trl.sft`), or the part of it that is not the family (`trl`)."""
        for candidate in (name, f"{name}.{family}", f"{family}.{name}"):
            found = self.backends.get(candidate)
            if found is not None and family_of(found) == family:
                return found
        return None

    def __iter__(self) -> Iterator[Backend]:
        return iter(self.backends[name] for name in sorted(self.backends))

    def _of(self, family: str) -> Iterator[Backend]:
        """Those that may be of a family: the ids of its own say so before they are imported."""
        if not isinstance(self.backends, (InstalledBackends, BackendsBeside)):
            return iter(self)
        return (b for b in map(self.backends.get, self.backends.named(family)) if b is not None)


class InstalledBackends(Mapping[str, Backend]):
    """What is installed, by id; each is imported when its id is looked up, all when the mapping is
    walked. One that fails, or whose id another distribution claims too, is left out and said in
    `complaints`: the installed rest stays usable."""

    def __init__(self) -> None:
        self.complaints: list[str] = []
        self._entries: dict[str, list[Announcement]] = {}
        self._loaded: dict[str, Backend | None] = {}
        for entry in announced(GROUP):
            self._entries.setdefault(entry.name, []).append(entry)

    def named(self, word: str) -> list[str]:
        """The ids that have a word between their dots, sorted; nothing is imported."""
        return [name for name in self._entries if word in name.split(".")]

    def __getitem__(self, name: str) -> Backend:
        if name not in self._loaded:
            self._loaded[name] = self._load(name) if name in self._entries else None
        found = self._loaded[name]
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._entries if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _load(self, name: str) -> Backend | None:
        claims: list[tuple[Announcement, Backend]] = []
        for entry in self._entries[name]:
            backend = _load(entry)
            if isinstance(backend, str):
                self.complaints.append(backend)
            elif all(backend is not other for _, other in claims):
                claims.append((entry, backend))
        if len(claims) > 1:
            owners = " and ".join(entry.owner for entry, _ in claims)
            self.complaints.append(f"backend {name} is claimed by {owners}: remove one of them")
        return claims[0][1] if len(claims) == 1 else None


class BackendsBeside(Mapping[str, Backend]):
    """Those that a spec brings along, before those that are installed."""

    def __init__(self, own: Mapping[str, Backend], installed: Mapping[str, Backend]) -> None:
        self._own, self._installed = own, installed

    def named(self, word: str) -> list[str]:
        """As InstalledBackends has it."""
        below = self._installed
        known = below.named(word) if isinstance(below, InstalledBackends) else [*below]
        return sorted({*known, *(name for name in self._own if word in name.split("."))})

    def __getitem__(self, name: str) -> Backend:
        return self._own[name] if name in self._own else self._installed[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._own, *self._installed)))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def family_of(backend: Backend) -> str:
    """The word that its id has between its dots: its kind, `env` or `serve`."""
    match backend:
        case StageBackend():
            return backend.kind
        case EnvironmentBackend():
            return _ENVIRONMENT
        case ServerBackend():
            return _SERVER


def load_backends() -> BackendTable:
    """What is installed: a table that imports a backend when it is asked for."""
    installed = InstalledBackends()
    return BackendTable(installed, installed.complaints)


def _load(entry: Announcement) -> Backend | str:
    """The backend of an entry point, or what is wrong with it."""
    try:
        backend = entry.load()
    except Exception as error:  # a stranger's module may raise anything at import
        reason = f"{type(error).__name__}: {error}"
        return f"backend {entry.name} of {entry.owner} cannot be imported: {reason}"
    if not isinstance(backend, (StageBackend, EnvironmentBackend, ServerBackend)):
        return f"{entry.value}, backend {entry.name} of {entry.owner}, is no backend"
    if backend.id != entry.name:
        return f"backend {entry.name} of {entry.owner} calls itself {backend.id}"
    if family_of(backend) not in entry.name.split("."):
        of = f"its id must have `{family_of(backend)}` in it"
        return f"backend {entry.name} of {entry.owner} would not be found: {of}"
    return backend

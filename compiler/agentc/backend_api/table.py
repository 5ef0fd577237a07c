"""BackendTable: every backend found through the entry-point group `agentc.backends`.

Loaded once by the command line and passed by argument; there is no global registry.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points

from agentc.backend_api.declare import (
    Backend,
    EnvironmentBackend,
    ServerBackend,
    StageBackend,
)

GROUP = "agentc.backends"


@dataclass(frozen=True, slots=True)
class BackendTable:
    """Backends by id (`trl.sft`, `env.textcraft`, `serve.vllm`), sorted. `broken` are sentences
    about entry points that give no usable backend."""

    backends: Mapping[str, Backend]
    broken: tuple[str, ...] = ()

    def stage_backends(self, kind: str) -> tuple[StageBackend, ...]:
        """Those that do the work of a stage kind, by id."""
        return tuple(b for b in self if isinstance(b, StageBackend) and b.kind == kind)

    def environments(self) -> tuple[EnvironmentBackend, ...]:
        """Those that serve tasks, by id."""
        return tuple(b for b in self if isinstance(b, EnvironmentBackend))

    def servers(self) -> tuple[ServerBackend, ...]:
        """Those that serve checkpoints, by id."""
        return tuple(b for b in self if isinstance(b, ServerBackend))

    def find(self, name: str, family: str) -> Backend | None:
        """The backend a spec means by `name` for a stage kind, or for "env" or "serve":
        a full id (`trl.sft`), or the part of it that is not the family (`trl`)."""
        for candidate in (name, f"{name}.{family}", f"{family}.{name}"):
            found = self.backends.get(candidate)
            if found is not None and _family(found) == family:
                return found
        return None

    def __iter__(self) -> Iterator[Backend]:
        return iter(self.backends[name] for name in sorted(self.backends))


def _family(backend: Backend) -> str:
    match backend:
        case StageBackend():
            return backend.kind
        case EnvironmentBackend():
            return "env"
        case ServerBackend():
            return "serve"


def load_backends() -> BackendTable:
    """Load every entry point. One that fails, or whose id another distribution claims too, is
    left out and said in `broken`: the installed rest stays usable."""
    found: dict[str, list[tuple[EntryPoint, Backend]]] = {}
    broken: list[str] = []
    for entry in sorted(entry_points(group=GROUP), key=lambda e: (e.name, e.value)):
        backend = _load(entry)
        if isinstance(backend, str):
            broken.append(backend)
        elif all(backend is not other for _, other in found.get(entry.name, [])):
            found.setdefault(entry.name, []).append((entry, backend))
    for name, claims in list(found.items()):
        if len(claims) > 1:
            owners = " and ".join(_owner(entry) for entry, _ in claims)
            broken.append(f"backend {name} is claimed by {owners}: remove one of them")
            del found[name]
    return BackendTable({name: claims[0][1] for name, claims in found.items()}, tuple(broken))


def _load(entry: EntryPoint) -> Backend | str:
    """The backend of an entry point, or what is wrong with it."""
    try:
        backend = entry.load()
    except Exception as error:  # a stranger's module may raise anything at import
        reason = f"{type(error).__name__}: {error}"
        return f"backend {entry.name} of {_owner(entry)} cannot be imported: {reason}"
    if not isinstance(backend, (StageBackend, EnvironmentBackend, ServerBackend)):
        return f"{entry.value}, backend {entry.name} of {_owner(entry)}, is no backend"
    if backend.id != entry.name:
        return f"backend {entry.name} of {_owner(entry)} calls itself {backend.id}"
    return backend


def _owner(entry: EntryPoint) -> str:
    dist = entry.dist
    return "an unknown distribution" if dist is None else f"{dist.name} {dist.version}"

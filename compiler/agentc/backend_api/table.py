"""BackendTable: every backend found through the entry-point group `agentc.backends`.

Loaded once by the command line and passed by argument; there is no global registry.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points

from agentc.backend_api.declare import (
    Backend,
    EnvironmentBackend,
    ServerBackend,
    StageBackend,
)

GROUP = "agentc.backends"


@dataclass(frozen=True, slots=True)
class BackendTable:
    """Backends by id (`trl.sft`, `env.textcraft`, `serve.vllm`), sorted."""

    backends: Mapping[str, Backend]

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
    """Load every entry point. Raises RuntimeError when two distributions claim one id, or when
    an entry point's object is no backend or bears another id than its name."""
    found: dict[str, Backend] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda e: e.name):
        backend = entry.load()
        if not isinstance(backend, (StageBackend, EnvironmentBackend, ServerBackend)):
            raise RuntimeError(f"entry point {entry.name} = {entry.value} is not a backend")
        if backend.id != entry.name:
            raise RuntimeError(f"entry point {entry.name} holds a backend named {backend.id}")
        if entry.name in found and found[entry.name] is not backend:
            raise RuntimeError(f"two distributions provide the backend {entry.name}")
        found[entry.name] = backend
    return BackendTable(found)

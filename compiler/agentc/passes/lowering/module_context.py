"""What a lowering asks of the spec besides its stage: leases of environments and servers, prompts,
files and claims."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from agentc.backend_api import BackendTable, StageBackend, StageView
from agentc.backend_api.view import Setting, unused_paths
from agentc.ir.module import Body, Module, Prompt
from agentc.kinds import KINDS
from agentc.kinds.field import Field, Json
from agentc.lock.references import OutsideReferences
from agentc.passes.finish import experiment_facts
from agentc.passes.lowering.leases import ModuleLeases
from agentc.runtime.store.digests import OutsideLinkError, content_digest
from agentc.source.files import Boundary, OutsideError

if TYPE_CHECKING:
    from agentc.passes.lowering.trial import LoweringTrial

_FIELDS = {kind.name: kind.fields for kind in KINDS}
_MOST_BYTES = 16 << 20
"""The largest file that a setting may name for its content to be read while compiling."""


class ModuleContext(ModuleLeases):
    """The LowerContext of a module. `tried` keeps what came of the lowering of bodies on backends
    (`trial.py`)."""

    def __init__(
        self,
        module: Module,
        table: BackendTable,
        boundary: Boundary,
        references: OutsideReferences | None = None,
    ) -> None:
        super().__init__(module, table, self.content_of)
        self._module = module
        self._boundary = boundary
        self._unused: dict[tuple[str, str], Mapping[str, str]] = {}
        self._tables: dict[tuple[str, str], tuple[tuple[Field, ...], dict[str, Setting]]] = {}
        self._references = OutsideReferences() if references is None else references
        self.tried: dict[tuple[Body, str], LoweringTrial] = {}

    def prompt(self, stage: StageView) -> Prompt | None:
        self.asked.add("prompt")
        name = None if self.stage is None else self.stage.uses.get("prompt")
        return None if name is None else self._module.prompts.get(name)

    def experiment(self) -> Mapping[str, Json]:
        return {"name": self._module.name, **experiment_facts(self._module)}

    def claims(self) -> tuple[Mapping[str, Json], ...]:
        return tuple(claim.record() for claim in self._module.claims)

    def digest_of(self, path: str) -> str | None:
        return self._digest_at(path, self._boundary.find(path))

    def _digest_at(self, path: str, place: Path) -> str | None:
        known = self._references.files
        if path not in known:
            try:
                digest = content_digest(place, self._boundary.holds)
            except OutsideLinkError as link:
                raise OutsideError(path, link.place) from None
            if digest is None:
                return None
            known[path] = digest
        return known[path]

    def local_file(self, path: str) -> Path | None:
        place = self._boundary.find(path)
        return place if self.digest_of(path) is not None and place.is_file() else None

    def model_folder(self, path: str) -> tuple[str, str | None]:
        """Where a job finds the model at a path, and the digest of its content."""
        place = self._boundary.find_model(path)
        is_elsewhere = place not in (self._boundary.directory / path, Path(path).expanduser())
        return str(place) if is_elsewhere else path, self._digest_at(path, place)

    def is_directory(self, path: str) -> bool:
        return self._boundary.find(path).is_dir()

    def content_of(self, path: str) -> bytes | None:
        """The content of a file that an environment's or server's entry names."""
        place = self.local_file(path)
        if place is None:
            return None
        try:
            content = place.read_bytes()
        except OSError:
            return None
        return content if len(content) <= _MOST_BYTES else None

    def pinned_revision(self, repo: str, revision: str) -> str | None:
        return self._references.commit(repo, revision)

    def fields_of(self, backend: StageBackend) -> tuple[tuple[Field, ...], dict[str, Setting]]:
        """The fields that a stage has on a backend, with what views have looked up in them."""
        name = (backend.kind, backend.id)
        if name not in self._tables:
            self._tables[name] = ((*_FIELDS[backend.kind], *backend.options), {})
        return self._tables[name]

    def unused_of(self, backend: StageBackend) -> Mapping[str, str]:
        """What the backend never reads, by path, with the reasons."""
        name = (backend.kind, backend.id)
        if name not in self._unused:
            self._unused[name] = unused_paths(self.fields_of(backend)[0], backend.unused)
        return self._unused[name]


def stage_values(body: Body) -> dict[str, Json]:
    """What the spec sets: kind fields and backend options in one mapping."""
    both = (*body.fields.items(), *body.options.items())
    return {name: value.json for name, value in both}

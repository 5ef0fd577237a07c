"""Stores that are made by hand: manifests as jobs leave them, without the jobs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from agentc.backend_api import BackendTable, load_backends
from agentc.compilation import compile_spec
from agentc.cost import Estimate, estimate_plan
from agentc.plan.render import plan_document

sys.path.insert(0, str(Path(__file__).parent))

Document = dict[str, Any]


@pytest.fixture(scope="session")
def table() -> BackendTable:
    """The installed backends."""
    return load_backends()


@pytest.fixture(scope="session")
def planned(repository: Path, table: BackendTable) -> Callable[..., Document]:
    """plan.json of a shipped spec, with `-p` values, at a scale."""

    def plan(name: str, scale: str | None = None, **params: str) -> Document:
        path = repository / "specs" / f"{name}.yaml"
        compiled = compile_spec(path, params, table, scale=scale)
        assert compiled.plan is not None, compiled.diagnostics
        return plan_document(compiled.plan)

    return plan


@pytest.fixture(scope="session")
def first_estimates(
    repository: Path, table: BackendTable, planned: Callable[..., Document]
) -> dict[str, tuple[Document, dict[str, Estimate]]]:
    """The plan of every shipped spec with its estimates on an empty store, by the spec's path."""
    found = {}
    for path in sorted((repository / "specs").rglob("*.yaml")):
        name = path.relative_to(repository / "specs").with_suffix("").as_posix()
        document = planned(name)
        found[name] = (document, estimate_plan(document, None, table=table))
    return found


@pytest.fixture
def finish(tmp_path: Path) -> Callable[..., Path]:
    """Writes the manifest of a job of a plan as if it had run."""

    def write(
        document: Mapping[str, Any],
        job_id: str,
        *,
        wall_s: float,
        facts: Mapping[str, Any] | None = None,
        store: Path | None = None,
        started: float = 1.0,
        key: str | None = None,
        **changes: Any,
    ) -> Path:
        job = next(each for each in document["jobs"] if each["id"] == job_id)
        manifest = {
            **{
                name: job[name]
                for name in (
                    "id", "kind", "backend", "version", "inputs", "identity", "config", "resources"
                )
            },
            "manifest": 1,
            "key": key or job["key"],
            "leases": [{**lease, "ready_s": 3.0} for lease in job["leases"]],
            "facts": dict(facts or {}),
            "hardware": {"cpus": 2, "gpus": []},
            "started": started,
            "wall_s": wall_s,
            "program_s": wall_s - (3.0 if job["leases"] else 0.0),
            "attempts": 1,
            "files": {},
            **changes,
        }  # fmt: skip
        root = store or tmp_path / "store"
        folder = root / "objects" / job["kind"] / manifest["key"]
        (folder / "data").mkdir(parents=True)
        (folder / "artifact.json").write_text(json.dumps(manifest), encoding="utf-8")
        return root

    return write

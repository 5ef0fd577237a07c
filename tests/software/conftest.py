"""Fixtures: a store of its own, a small wheel, and an environment built from it."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from agentc.backend_api import JobDraft, Software, StageBackend, StageView
from agentc.kinds import kind_named
from agentc.runtime.software.job_software import ensure_software
from agentc.runtime.store.layout import StoreLayout
from agentc.software.requirements import Needed
from agentc_backends.results.report import backend as report_html

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from wheels import addressed, write_wheel


@pytest.fixture
def layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StoreLayout:
    """A store whose software stacks lie inside of it."""
    monkeypatch.delenv("AGENTC_SOFTWARE", raising=False)
    return StoreLayout(tmp_path / "store")


@pytest.fixture(scope="session")
def _once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Needed, Path]:
    """An environment of one small wheel, and its folder: built once, to be copied."""
    folder = tmp_path_factory.mktemp("once")
    wheel = write_wheel(folder, "tinything", "1.2", {"tinything.py": "VALUE = 42\n"})
    lock = f"{addressed('tinything', wheel)}\n"
    needed = Needed(name="tiny", lock=lock, users=("acme.sft",))
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("AGENTC_SOFTWARE", raising=False)
        directory, _ = ensure_software(StoreLayout(folder / "store"), needed.sha256, lock)
    return needed, directory


@pytest.fixture
def tiny(_once: tuple[Needed, Path]) -> Needed:
    """An environment of one small wheel, not built yet."""
    return _once[0]


@pytest.fixture
def built(layout: StoreLayout, _once: tuple[Needed, Path]) -> Path:
    """The folder of that environment, built."""
    needed, directory = _once
    copy = needed.directory(layout)
    shutil.copytree(directory, copy, symlinks=True)
    return copy


@pytest.fixture
def python_demand() -> list[str]:
    """A test may put the Python into it that the installed backend demands."""
    return []


@pytest.fixture
def scratch_spec(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny: Needed, python_demand: list[str]
) -> Path:
    """A spec of one stage, whose backend another distribution brings along."""
    folder = tmp_path / "distribution"
    info = folder / "acme-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[agentc.backends]\nacme.dataset = acme:BACKEND\n")
    (folder / "acme.py").write_text("")
    module = ModuleType("acme")
    module.BACKEND = StageBackend(  # type: ignore[attr-defined]
        id="acme.dataset",
        kind="dataset",
        version=1,
        doc="A made-up one.",
        software=Software(name="tiny", lock=tiny.lock),
        lower=lambda view, context: _lower(view, tiny, python_demand),
    )
    monkeypatch.setitem(sys.modules, "acme", module)
    # Every plan ends in a report, whose own environment would take a while to build.
    page = report_html.BACKEND
    software = module.BACKEND.software
    monkeypatch.setattr(
        report_html,
        "BACKEND",
        replace(
            page,
            lower=lambda view, context: tuple(
                replace(draft, software=software) for draft in page.lower(view, context)
            ),
        ),
    )
    monkeypatch.syspath_prepend(str(folder))
    spec = tmp_path / "spec.yaml"
    spec.write_text(
        "agentc: 1\nname: made-up\nstages:\n"
        "  data: {kind: dataset, backend: acme, path: rows.jsonl}\n"
    )
    return spec


def _lower(view: StageView, tiny: Needed, demand: list[str]) -> tuple[JobDraft, ...]:
    kind = kind_named("dataset")
    assert kind is not None
    return (
        JobDraft(
            kind="dataset",
            backend="acme.dataset",
            version=1,
            software=Software(name="tiny", lock=tiny.lock, python=demand[0] if demand else None),
            program=("-m", "acme"),
            view=view,
            config={field.name: view.get(field.name) for field in kind.fields},
            inputs={},
            produces="SFTDataset",
        ),
    )

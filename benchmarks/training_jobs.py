"""Runs single stages as a run would, without a spec: lowers one, writes its job file, and starts
its program in the backend's software stack."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentc.backend_api import JobDraft, Software, StageBackend, StageView
from agentc.kinds import kind_named
from agentc.runtime.software.job_software import code_directory, ensure_software, job_variables
from agentc.runtime.software.lock_text import lock_digest
from agentc.runtime.store.layout import StoreLayout
from benchmarks.held_memory import HeldMemory
from benchmarks.processes import CommandError

_NOTHING: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Stages:
    """A folder in which stages are run, one after the other."""

    folder: Path

    def run(
        self,
        name: str,
        backend: StageBackend,
        settings: Mapping[str, Any],
        inputs: Mapping[str, Sequence[Path]],
    ) -> Path:
        """Run a stage of one job; its staging folder, with `data` and `logs`. Raises CommandError
        when settings are refused or the program fails."""
        return self.measured(name, backend, settings, inputs)[0]

    def measured(
        self,
        name: str,
        backend: StageBackend,
        settings: Mapping[str, Any],
        inputs: Mapping[str, Sequence[Path]],
        variables: Mapping[str, str] = _NOTHING,
    ) -> tuple[Path, int]:
        """The same, with the memory in bytes that its largest process held at most; `variables`
        are further ones of its environment."""
        draft = lowered(backend, settings, inputs)
        staging = self.folder / name
        for part in ("data", "work", "logs"):
            (staging / part).mkdir(parents=True)
        job = {
            "id": name,
            "key": "0" * 32,
            "kind": backend.kind,
            "config": draft.config,
            "placement": draft.placement,
            "contract": {},
            "processes": draft.processes,
            "resources": {"cpus": 1, "gpus": 0},
            "inputs": {role: [str(path) for path in paths] for role, paths in inputs.items()},
            "input_objects": {},
            "leases": {},
            "out": str(staging / "data"),
            **{part: str(staging / part) for part in ("work", "logs")},
            **{part: str(staging / f"{part}.json") for part in ("facts", "progress")},
        }
        (staging / "job.json").write_text(json.dumps(job), encoding="utf-8")
        layout = StoreLayout(self.folder)
        code = code_directory(layout, ["agentc", "agentc_backends"])
        said = staging / "logs" / "output.txt"
        with said.open("wb") as output:
            process = subprocess.Popen(
                [self.python(draft.software), *draft.program, str(staging / "job.json")],
                cwd=staging,
                env={**job_variables(code, 1, False, {}), **variables},
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            with HeldMemory(process.pid) as memory:
                process.wait()
        if process.returncode != 0:
            text = said.read_text(encoding="utf-8", errors="replace")
            raise CommandError(f"{name} ({backend.id}) failed:\n{text[-2000:]}")
        return staging, max(memory.peaks.values())

    def python(self, software: Software) -> Path:
        """The interpreter of a software stack, which is built when it is not there."""
        digest = lock_digest(software.text)

        def report(line: str) -> None:
            print(f"environment {software.name}: {line}", file=sys.stderr)

        directory, _ = ensure_software(StoreLayout(self.folder), digest, software.text, report)
        return directory / "bin" / "python"


def lowered(
    backend: StageBackend, settings: Mapping[str, Any], inputs: Iterable[str] = ()
) -> JobDraft:
    """The job of a stage with these settings. Raises CommandError when one is refused."""
    kind = kind_named(backend.kind)
    assert kind is not None
    view = StageView(
        table=(*kind.fields, *backend.options),
        values=dict(settings),
        kind=backend.kind,
        inputs=dict.fromkeys(inputs, ("sample",)),
    )
    (draft,) = backend.lower(view, None)  # type: ignore[arg-type]
    if view.refusals:
        raise CommandError(f"{backend.id}: {view.refusals[0].path}: {view.refusals[0].reason}")
    return draft


def missing_environments(softwares: Iterable[Software]) -> list[str]:
    """Names of those that are not built in $AGENTC_SOFTWARE."""
    folder = Path(os.environ["AGENTC_SOFTWARE"])
    return [
        software.name
        for software in softwares
        if not (folder / lock_digest(software.text)[:16] / "complete.json").exists()
    ]


def write_rows(folder: Path, name: str, rows: Iterable[Mapping[str, Any]]) -> Path:
    """A data directory with one JSONL file."""
    folder.mkdir(parents=True)
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / name).write_text(text, encoding="utf-8")
    return folder

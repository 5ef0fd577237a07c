"""The smoke run of end-to-end tests: agentc's command, and what a store holds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from agentc.backend_api import load_backends
from agentc.runtime.software.lock_text import lock_digest


@dataclass(frozen=True, slots=True)
class Smoke:
    """The smoke run, undisturbed: its spec, the store that has all of it, the seconds it took."""

    spec: Path
    store: Path
    seconds: float


def agentc(*words: str | Path) -> str:
    """What a command prints on standard output; it must succeed."""
    argv = [str(Path(sys.executable).with_name("agentc")), *map(str, words)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=1800)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def starts(store: Path) -> dict[str, str]:
    """When the job of each published object was started, by `kind/key`."""
    manifests = (
        json.loads(path.read_text(encoding="utf-8"))
        for path in (store / "objects").glob("*/*/artifact.json")
    )
    return {f"{made['kind']}/{made['key']}": made["started"] for made in manifests}


def require_software(backend: str) -> None:
    """Skip where the software stack of a backend is not built: tests build none."""
    found = load_backends().backends[backend]
    digest = lock_digest(found.software.text)[:16]
    if not (Path(os.environ["AGENTC_SOFTWARE"]) / digest / "complete.json").exists():
        pytest.skip(f"the software stack of {backend} is not built: `make software`")

"""What the tests of locks ask: the lock of a spec, and the codes that a check gives."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentc.cli import main
from agentc.diagnostics import Sink
from agentc.lock.document import LockDocument, read_lock


def lock_of(spec: Path) -> LockDocument:
    found = read_lock(spec.with_suffix(".lock"), Sink())
    assert found is not None
    return found


def codes(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, list[str]]:
    """Exit code and codes of `agentc check --format json`."""
    capsys.readouterr()
    code = main(["check", "--format", "json", *map(str, words)])
    found = json.loads(capsys.readouterr().out)["diagnostics"]
    return code, [f"{one['severity']} {one['code']}" for one in found]

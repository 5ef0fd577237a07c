"""Which server results are of: what starts it enters keys, an address does not (a warning)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.model_folder import write_model_folder

from agentc.backend_api import BackendTable, load_backends
from agentc.compilation import Compilation, compile_spec

SPEC = """\
agentc: 1
name: demo
environments:
  world:
{settings}
models:
  base: {{backend: path, path: model}}
servers:
  local: {{backend: scripted}}
prompts:
  react: {{instruction: Act.}}
stages:
  score: {{kind: evaluate, model: base, environment: world, split: test}}
  again: {{kind: rollout, model: base, environment: world, split: test}}
"""
WORLDS: dict[str, dict[str, Any]] = {
    "mcp": {"tasks": {"rows": [{"instruction": "Say 4.", "answer": "4"}]}},
    "openenv": {},
    "agentgym": {"server": "textcraft"},
}
URL = "http://127.0.0.1:36008"


@pytest.fixture(scope="module")
def table() -> BackendTable:
    return load_backends()


@pytest.fixture(params=sorted(WORLDS))
def compiled(
    request: pytest.FixtureRequest, tmp_path: Path, table: BackendTable
) -> Callable[..., Compilation]:
    write_model_folder(tmp_path / "model")

    def run(**settings: Any) -> Compilation:
        entry = {"backend": request.param, "splits": {"test": {"ids": [0]}}}
        entry |= {**WORLDS[request.param], **settings}
        lines = (f"    {name}: {json.dumps(value)}\n" for name, value in entry.items())
        path = tmp_path / "spec.yaml"
        path.write_text(SPEC.format(settings="".join(lines)))
        compilation = compile_spec(path, {}, table, allowed=())
        assert not compilation.has_errors, [found.message for found in compilation.diagnostics]
        return compilation

    return run


def keys(compilation: Compilation) -> list[str]:
    assert compilation.plan is not None
    return [job.key for job in compilation.plan.jobs if job.stage in ("score", "again")]


def test_another_program_has_other_keys(compiled: Callable[..., Compilation]) -> None:
    launches: tuple[dict[str, Any], ...] = (
        {"command": ["python3", "server.py"]},
        {"command": ["python3", "other.py"]},
        {"command": ["python3", "server.py", "--db", "two"]},
        {"command": ["python3", "server.py"], "variables": {"DB": "two"}},
        {"command": ["python3", "server.py"], "variables": {"DB": "three"}},
        {"command": ["python3", "server.py"], "cwd": "elsewhere"},
    )
    found = [keys(compiled(launch=launch)) for launch in launches]
    found.append(keys(compiled(url=URL)))
    assert all(found)
    for of_stage in zip(*found, strict=True):
        assert len(set(of_stage)) == len(found)
    assert keys(compiled(launch=launches[0], timeout_s=9, sessions=2)) == found[0]
    assert keys(compiled(url="http://gym.example:80")) == found[-1]


@pytest.mark.parametrize("compiled", ["agentgym", "openenv"], indirect=True)
def test_how_long_a_start_may_take_is_no_identity(compiled: Callable[..., Compilation]) -> None:
    launch: dict[str, Any] = {"command": ["python3", "server.py"]}
    patient = {**launch, "ready_timeout_s": 900, "ready_path": "/ready"}
    assert keys(compiled(launch=patient)) == keys(compiled(launch=launch))


def test_an_address_without_an_identity_is_a_warning(compiled: Callable[..., Compilation]) -> None:
    (found,) = compiled(url=URL).diagnostics
    assert (found.code, found.severity) == ("AGC666", "warning")
    assert "world" in found.message
    assert "fingerprint" in str(found.fix)
    pinned: tuple[dict[str, Any], ...] = (
        {"url": URL, "fingerprint": "0123456789abcdef" * 2},
        {"url": URL, "release": "3ef9235"},
        {"launch": {"command": ["python3", "server.py"]}},
    )
    for settings in pinned:
        assert compiled(**settings).diagnostics == ()

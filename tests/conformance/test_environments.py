"""Every installed environment that can be served, held to the environment checks of the kit.

Environments come from the table of backends, so that a new one cannot be forgotten; one whose
software is not there skips and says so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from agentc.backend_api import OWN_LOOP, EnvironmentBackend, load_backends
from agentc.conformance import BackendUnderTest, Bench, Skipped
from agentc.conformance.check import Check
from agentc.conformance.programs import built_pythons
from agentc.conformance.serving import served_checks
from agentc.runtime.software.lock_text import lock_digest
from agentc.runtime.store.layout import StoreLayout
from agentc_backends.software import FRONTEND, GYMNASIUM, LIGHT, SANDBOX

TABLE = load_backends()
ROOT = Path(__file__).parents[2]
SERVED = [
    b
    for b in TABLE
    # Nobody opens an environment that owns its loop. tests/backends/env_mcp has a server for MCP,
    # and holds it to these checks.
    if isinstance(b, EnvironmentBackend)
    and b.available
    and OWN_LOOP not in b.capabilities
    and b.id != "env.mcp"
]
LIGHT_PACKAGES = ("httpx2", "starlette", "uvicorn")


def textcraft_started() -> dict[str, Any]:
    """A launch of env.textcraft, which answers AgentGym's routes and OpenEnv's."""
    path = os.pathsep.join(str(ROOT / part) for part in ("compiler", "backends"))
    program = [
        sys.executable,
        "-m",
        "agentc_backends.environments.textcraft.job_serve",
        "--port",
        "{port}",
    ]
    return {"command": program, "ready_path": "/health", "variables": {"PYTHONPATH": path}}


def textcraft_in_its_place() -> dict[str, Any]:
    """A server of the family that is always here."""
    splits = {"train": {"range": [31, 538]}, "test": {"range": [0, 31]}}
    return {"server": "textcraft", "splits": splits, "launch": textcraft_started()}


def textcraft_by_openenv() -> dict[str, Any]:
    """The same, spoken to as an OpenEnv server, whose seeds are places in its split."""
    splits = {"train": {"range": [10, 40]}, "test": {"range": [0, 10]}}
    reset = {"split": "test"}
    return {"splits": splits, "reset": reset, "launch": textcraft_started(), "sessions": 32}


def released(server: str, needs: str, splits: Mapping[str, Any]) -> dict[str, Any]:
    """AgentGym's own server, where AGENTC_AGENTGYM names a checkout and AGENTC_AGENTGYM_PYTHON an
    interpreter that has what it imports."""
    checkout = os.environ.get("AGENTC_AGENTGYM")
    if not checkout:
        pytest.skip("AGENTC_AGENTGYM names no checkout of AgentGym")
    python = os.environ.get("AGENTC_AGENTGYM_PYTHON", sys.executable)
    tried = subprocess.run([python, "-c", f"import {needs}"], capture_output=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"{python} cannot import {needs}")
    program = [python, "-m", "uvicorn", f"agentenv_{server}:app", "--port", "{port}"]
    launch = {"command": program, "cwd": str(Path(checkout) / f"agentenv-{server}")}
    return {"server": server, "splits": splits, "launch": launch}


TWO = {"train": {"range": [0, 1]}, "test": {"range": [1, 2]}}
RELEASED = {
    "textcraft": ("fastapi, uvicorn, gymnasium", {"test": {"range": [0, 31]}}),
    "sciworld": ("fastapi, uvicorn, scienceworld", {"test": {"ids": [0, 3491]}}),
    "babyai": ("fastapi, uvicorn, gym, minigrid, matplotlib", {"test": {"range": [0, 40]}}),
}


FEW = {"train": {"range": [0, 4]}, "test": {"range": [4, 6]}}
GYM: Mapping[str, dict[str, Any]] = {
    "FrozenLake-v1": {
        "id": "FrozenLake-v1",
        "splits": FEW,
        "actions": ["left", "down", "right", "up"],
        "observation": "ansi",
    },
    "Taxi-v4": {
        "id": "Taxi-v4",
        "splits": FEW,
        "observation": "both",
        "info": ["action_mask"],
        "reward": {"lowest": -2000, "highest": 20},
    },
    "Blackjack-v1": {
        "id": "Blackjack-v1",
        "splits": FEW,
        "actions": ["stick", "hit"],
        "reward": {"lowest": -1},
    },
}


GIVEN: Mapping[str, list[tuple[str, Callable[[], dict[str, Any]]]]] = {
    # Settings that an environment needs, or is worth trying with, each with a name.
    "env.textcraft": [
        ("", dict),
        ("invented", lambda: {"recipes": "invented", "invented_families": 60}),
        ("ending", lambda: {"end_on_refusal": True, "max_depth": 2}),
    ],
    "env.colbench_backend": [
        ("", lambda: {"rounds": 4, "announce_last": True, "invented_tasks": 60}),
        ("file", lambda: {"tasks": "two_functions.jsonl", "splits": TWO, "rounds": 2}),
    ],
    "env.colbench_frontend": [
        ("", lambda: {"rounds": 3, "invented_tasks": 20, "browsers": 1}),
        ("file", lambda: {"tasks": "two_pages.jsonl", "splits": TWO, "rounds": 2, "browsers": 1}),
    ],
    "env.corridor": [
        ("", dict),
        ("short", lambda: {"tasks": 1, "max_steps": 5}),
        ("gamble", lambda: {"gamble": True}),
    ],
    "env.twenty_questions": [
        ("", dict),
        (
            "paper",
            lambda: {
                "objects": "subset",
                "splits": "together",
                "reward": "per_question",
                "observation": "transcript",
            },
        ),
        ("final", lambda: {"guess": "final"}),
    ],
    "env.guess_my_city": [
        ("", dict),
        ("upstream", lambda: {"judge": "upstream_v1", "splits": "together", "unknown": "no"}),
    ],
    "env.webshop": [
        ("", dict),
        ("titles", lambda: {"products": 60, "invented_seed": 3, "expert_query": "title"}),
    ],
    "env.gymnasium": [
        ("lake", lambda: GYM["FrozenLake-v1"]),
        ("taxi", lambda: GYM["Taxi-v4"]),
        ("blackjack", lambda: GYM["Blackjack-v1"]),
    ],
    "env.openenv": [("ours", textcraft_by_openenv)],
    "env.agentgym": [
        ("ours", textcraft_in_its_place),
        *((f"released-{name}", partial(released, name, *of)) for name, of in RELEASED.items()),
    ],
}
SPEC_FOLDERS = {
    # Where a spec would lie beside files that are not ours to ship.
    "env.detective": ROOT.parent / "shared/data/jericho",
}
SPEC_FILES = {
    # What lies beside the spec.
    "env.colbench_backend": Path(__file__).with_name("two_functions.jsonl"),
    "env.colbench_frontend": Path(__file__).with_name("two_pages.jsonl"),
}
ACTIONS = {
    "env.openenv": ["inventory", "get 1 stick", "get 2 oak log", "look", "craft 4 oak planks"],
    # Words that mean something in one of its worlds, where no expert gives any.
    "env.gymnasium": ["right", "down", "down", "right", "0", "1", "4", "5", "hit", "hit", "stick"],
    "env.agentgym": [
        "inventory",
        "get 1 stick",
        "get 2 oak log",
        "craft 4 oak planks using 1 oak log",
        "look around",
        "open door to kitchen",
        "go to kitchen",
        "turn left",
        "move forward",
        "go to red ball 1",
    ],
    "env.colbench_backend": [
        "What does it take?",
        "I WANT TO ANSWER: def double(x): return x + x",
    ],
    "env.colbench_frontend": [
        "Is this it? <html><body><h1>Oak Bakery</h1></body></html>",
        "I WANT TO ANSWER: <html><body><h1>River Zoo</h1></body></html>",
    ],
}


def subject_of(
    backend: EnvironmentBackend, given: Mapping[str, Any], directory: Path
) -> BackendUnderTest:
    pythons = built_pythons(StoreLayout(".agentc/store"))
    if all(find_spec(name) for name in LIGHT_PACKAGES):
        pythons[lock_digest(LIGHT.lock)] = Path(sys.executable)
        if find_spec("numpy"):
            pythons[lock_digest(SANDBOX.lock)] = Path(sys.executable)
        if all(find_spec(name) for name in ("numpy", "gymnasium")):
            pythons[lock_digest(GYMNASIUM.lock)] = Path(sys.executable)
        if all(find_spec(name) for name in ("numpy", "skimage", "imagehash")):
            pythons[lock_digest(FRONTEND.lock)] = Path(sys.executable)
    bench = Bench(table=TABLE, directory=directory)
    return BackendUnderTest(backend=backend, bench=bench, given=given, pythons=pythons)


OF_THE_SERVER = frozenset({"bad input", "close", "concurrent episodes", "expiry", "token"})
"""What one server program promises under all settings alike."""


def all_checks() -> Iterator[Any]:
    for backend in SERVED:
        for number, (setting, given) in enumerate(GIVEN.get(backend.id, [("", dict)])):
            # Each setting is three more servers: those beyond an environment's first are slow.
            quick = backend.software is LIGHT and number == 0
            for check in served_checks(subject_of(backend, {}, Path())):
                told = check.name.removeprefix("serves: ")
                if number and told in OF_THE_SERVER and "released" not in setting:
                    continue
                name = "-".join(
                    word.replace(" ", "_") for word in (backend.id, setting, told) if word
                )
                marks = [] if quick else [pytest.mark.slow]
                if (backend.id, setting) == ("env.colbench_frontend", "file"):
                    marks.append(pytest.mark.long)  # a browser for each server
                yield pytest.param(backend, given, check.name, id=name, marks=marks)


class Kept:
    """The subjects under check, each with its one server, which waits for the next check."""

    def __init__(self, folders: Callable[[], Path]) -> None:
        self._folders = folders
        self._subjects: dict[tuple[str, Any], tuple[Path, dict[str, Check]]] = {}
        self.servers = ExitStack()

    def subject(
        self, backend: EnvironmentBackend, given: Callable[[], Any]
    ) -> tuple[Path, dict[str, Check]]:
        """Where the spec of a backend under some settings would lie, and its checks by name."""
        if (backend.id, given) not in self._subjects:
            folder = self._folders()
            actions = ACTIONS.get(backend.id, ())
            made = served_checks(
                subject_of(backend, given(), folder), actions=actions, kept=self.servers
            )
            self._subjects[backend.id, given] = folder, {check.name: check for check in made}
        return self._subjects[backend.id, given]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    found = Kept(lambda: tmp_path_factory.mktemp("subject"))
    with found.servers:
        yield found


@pytest.mark.parametrize(("backend", "given", "name"), list(all_checks()))
def test_environment(
    backend: EnvironmentBackend,
    given: Callable[[], dict[str, Any]],
    name: str,
    kept: Kept,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AGENTC_ALLOW_LAUNCH", "1")
    folder, checks = kept.subject(backend, given)
    where = SPEC_FOLDERS.get(backend.id, folder)
    if not where.is_dir():
        pytest.skip(f"there is no {where}")
    if backend.id in SPEC_FILES:
        shutil.copy(SPEC_FILES[backend.id], where)
    monkeypatch.setenv("AGENTC_SPEC_DIR", str(where))
    try:
        checks[name].run()
    except Skipped as reason:
        pytest.skip(str(reason))

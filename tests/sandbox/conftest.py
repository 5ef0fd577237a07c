"""Boxes of this machine for the tests, and processes that play as another user.

A kind of box that is not to be had here is skipped with the reason; where the tests have to run
(AGENTC_REQUIRE_SANDBOX), a machine without any is a failure.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from agentc.runtime.sandbox.boxes import KINDS, NOBODY, CodeBox, boxed_interpreter
from agentc.runtime.sandbox.probe import BoxProbe, choose_box, probe, refusal

ROOT = Path(__file__).resolve().parents[2]
_TREES = (
    "compiler/agentc/program",
    "compiler/agentc/runtime/sandbox",
    "backends/agentc_backends/environments/code_tests",
)
_PARENTS = (
    "compiler/agentc",
    "compiler/agentc/runtime",
    "backends/agentc_backends",
    "backends/agentc_backends/environments",
)

Player: TypeAlias = Callable[..., dict[str, Any]]


@lru_cache(maxsize=1)
def _probed() -> tuple[BoxProbe, ...]:
    return probe()


@lru_cache(maxsize=1)
def _interpreter_of_nobody() -> str:
    program = boxed_interpreter().program
    if subprocess.run([program, "-c", "import sys; assert sys.version_info >= (3, 10)"]).returncode:
        pytest.skip(f"{program}, which nobody can read, is older than Python 3.10")
    return program


@pytest.fixture(scope="session", autouse=True)
def _some_box() -> None:
    if all(each.box is None for each in _probed()) and os.environ.get("AGENTC_REQUIRE_SANDBOX"):
        pytest.fail(refusal([*_probed()]))


@pytest.fixture(scope="session", params=KINDS)
def each_box(request: pytest.FixtureRequest) -> CodeBox:
    """Every kind of box, one after the other."""
    (found,) = (each for each in _probed() if each.kind == request.param)
    if found.box is None:
        pytest.skip(f"no {found.kind}: {found.reason}")
    return found.box


@pytest.fixture(scope="session")
def box() -> CodeBox:
    """The one that this machine would take."""
    if all(each.box is None for each in _probed()):
        pytest.skip(refusal([*_probed()]))
    return choose_box()


@pytest.fixture(scope="session")
def numpy_box() -> CodeBox:
    """The same, whose interpreter has this process's numpy."""
    found = find_spec("numpy")
    if found is None or found.origin is None:
        pytest.skip("numpy is not installed")
    inside = boxed_interpreter(packages=(str(Path(found.origin).parents[1]),))
    if subprocess.run(
        [inside.program, "-c", f"import sys; assert sys.version_info[:2] == {sys.version_info[:2]}"]
    ).returncode:
        pytest.skip(f"{inside.program} is another Python than the one that numpy is for")
    if all(each.box is None for each in _probed()):
        pytest.skip(refusal([*_probed()]))
    return choose_box("auto", inside)


@pytest.fixture(scope="session")
def readable_tree() -> Iterator[Path]:
    """What a player imports, where everybody may read it: a checkout may be in root's home."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        tree = Path(name)
        for parent in _PARENTS:
            (tree / parent).mkdir(parents=True)
            shutil.copy(ROOT / parent / "__init__.py", tree / parent)
        for folder in (*_TREES, "tests/sandbox"):
            shutil.copytree(
                ROOT / folder, tree / folder, ignore=shutil.ignore_patterns("__pycache__")
            )
        for path in (tree, *tree.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        yield tree


@pytest.fixture
def play(readable_tree: Path) -> Player:
    """`play(user, module, *words, path=...)`: what a player prints. `user` is `root`, or `nobody`,
    whom only root can become."""

    def played(user: str, module: str, *words: str, **variables: str) -> dict[str, Any]:
        roots = [readable_tree, readable_tree / "compiler", readable_tree / "backends"]
        command = [sys.executable]
        if user == "root" and os.geteuid() != 0:
            pytest.skip("only root can play as root")
        if user == "nobody" and os.geteuid() == 0:
            ids = [f"--reuid={NOBODY}", f"--regid={NOBODY}"]
            command = ["setpriv", *ids, "--clear-groups", "--", _interpreter_of_nobody()]
        said = subprocess.run(
            [*command, "-B", "-m", f"tests.sandbox.{module}", *words],
            cwd=readable_tree,
            env={
                "PYTHONPATH": os.pathsep.join(str(each) for each in roots),
                "PATH": os.environ["PATH"],
                **variables,
            },
            capture_output=True,
            text=True,
        )
        assert said.returncode == 0, said.stderr[-4000:]
        told: dict[str, Any] = json.loads(said.stdout.splitlines()[-1])
        return told

    return played

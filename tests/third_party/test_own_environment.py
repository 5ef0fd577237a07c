"""The example of docs/custom_environments.md: an environment in its own package, as short as the
page promises, held to the kit, and played by the expert stage."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.support.patience import PATIENCE_S

SOURCE = Path(__file__).parent / "sorting"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "custom_environments.md"
FILES = ("sorting_world/world.py", "sorting_world/backend.py", "pyproject.toml", "spec.yaml")
MOST_LINES = 60


@pytest.mark.parametrize("file", FILES)
def test_the_page_shows_this_very_code(file: str) -> None:
    blocks = PAGE.read_text(encoding="utf-8").split("```")
    told = dict(zip(blocks[::2], blocks[1::2], strict=False))
    [block] = [code for before, code in told.items() if before.rstrip().endswith(f"`{file}`:")]
    assert block.split("\n", 1)[1] == (SOURCE / file).read_text(encoding="utf-8")


def test_it_is_as_short_as_promised() -> None:
    lines = [line for file in FILES[:2] for line in (SOURCE / file).read_text().splitlines()]
    assert len(lines) <= MOST_LINES
    assert f"{MOST_LINES} lines" in PAGE.read_text(encoding="utf-8")


@pytest.mark.slow
def test_its_wheel_conforms_and_its_expert_runs(tmp_path: Path, repository: Path) -> None:
    shared = Path(os.environ.get("AGENTC_SOFTWARE", repository / ".agentc" / "software"))
    if not list(shared.glob("*/bin/python")):
        pytest.skip(f"no software stacks in {shared}; `make software` builds them")
    site = _installed(tmp_path)

    def agentc(*words: str) -> str:
        done = subprocess.run(
            [str(Path(sys.executable).with_name("agentc")), *words],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            timeout=PATIENCE_S,
            env={**os.environ, "PYTHONPATH": str(site), "AGENTC_SOFTWARE": str(shared)},
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    conforms = agentc("dev", "conformance", "env.sorting", "--run")
    assert "it conforms" in conforms
    assert "passed   serves: expert" in conforms
    shutil.copy(SOURCE / "spec.yaml", tmp_path / "spec.yaml")
    agentc("run", "spec.yaml", "--plain")
    [made] = (tmp_path / ".agentc" / "store" / "objects" / "expert").iterdir()
    rows = [json.loads(line) for line in (made / "data" / "trajectories.jsonl").open()]
    assert [row["reward"] for row in rows] == [1.0] * 12
    # In the job's own process, and what was opened there is told in the manifest.
    [lease] = json.loads((made / "artifact.json").read_text())["leases"]
    assert lease["inside"]
    assert lease["served"] == {"name": "sorting", "version": "1", "options": {"length": 4}}


def _installed(folder: Path) -> Path:
    shutil.copytree(SOURCE, folder / "source", ignore=shutil.ignore_patterns("__pycache__"))
    isolation = ["--no-build-isolation"] if find_spec("hatchling") else []
    _pip("wheel", "--no-deps", *isolation, "--wheel-dir", str(folder), str(folder / "source"))
    [wheel] = folder.glob("*.whl")
    _pip("install", "--no-deps", "--no-index", "--target", str(folder / "site"), str(wheel))
    return folder / "site"


def _pip(*words: str) -> None:
    argv = [sys.executable, "-m", "pip", "--disable-pip-version-check", *words]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr

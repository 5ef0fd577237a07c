"""The recipes of containers/: what they take is there, and what they install works.

No image is built here: that needs a registry. `install.sh`, which does the work in both, is run.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "containers"
DOCKERFILE = (FOLDER / "Dockerfile").read_text(encoding="utf-8")
DEFINITION = (FOLDER / "apptainer.def").read_text(encoding="utf-8")
INSTALL = (FOLDER / "install.sh").read_text(encoding="utf-8")


def taken() -> tuple[set[str], set[str]]:
    """What each recipe copies out of a checkout."""
    copies = re.findall(r"^COPY --chown=agentc (.*) \S+$", DOCKERFILE, re.MULTILINE)
    files = DEFINITION.split("%files\n")[1].split("\n\n")[0].splitlines()
    return (
        {word for line in copies for word in line.split()},
        {word for line in files for word in line.split()[:-1]},
    )


def test_both_take_what_a_wheel_is_built_from() -> None:
    docker, apptainer = taken()
    assert docker == apptainer
    assert all((ROOT / name).exists() for name in docker)
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for name in ("compiler", "backends", "templates", "specs", "Snakefile", "README.md", "LICENSE"):
        assert name in project
        assert name in docker


def test_both_install_the_same_and_as_no_root() -> None:
    packages = [
        re.search(r"no-install-recommends \\\n\s+(.*?)( \\)?$", text, re.MULTILINE)
        for text in (DOCKERFILE, DEFINITION)
    ]
    assert packages[0] is not None
    assert packages[1] is not None
    assert packages[0][1] == packages[1][1]
    for variable in re.findall(r"\$\{(\w+):\?", INSTALL):
        assert f"{variable}=" in DOCKERFILE
        assert f"{variable}=" in DEFINITION
    steps = DOCKERFILE.splitlines()
    [run] = [n for n, line in enumerate(steps) if line.startswith("RUN SOURCE=")]
    users = [line for line in steps[:run] if line.startswith("USER ")]
    assert users == ["USER 1000:1000"]


@pytest.mark.skipif(shutil.which("hadolint") is None, reason="hadolint is not installed")
def test_hadolint_has_nothing_against_it() -> None:
    words = ["hadolint", str(FOLDER / "Dockerfile")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.long
def test_what_it_installs_plans_an_experiment(tmp_path: Path) -> None:
    source = tmp_path / "source"
    for name in taken()[0]:  # what an image gets, and nothing besides
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            left_out = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, source / name, ignore=left_out)
        else:
            shutil.copy(ROOT / name, source / name)
    prefix = tmp_path / "prefix"
    kept = {n: v for n, v in os.environ.items() if n.startswith(("PIP_", "UV_", "SSL_", "HTTP"))}
    environment = {**kept, "HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    words = {"SOURCE": str(source), "PREFIX": str(prefix), "SOFTWARE": "light sandbox"}
    done = subprocess.run(
        ["sh", str(source / "containers" / "install.sh")],
        env={**environment, **words},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines()[-1].startswith("agentc ")
    shutil.rmtree(source)
    environment["AGENTC_SOFTWARE"] = str(prefix / "software")
    for command, said in (
        (["init", "mine.yaml", "--from", "quickstart"], "mine.yaml"),
        (["plan", "mine.yaml"], "sft"),
        (["software", "ls"], "light"),
    ):
        done = subprocess.run(
            [prefix / "python" / "bin" / "agentc", *command],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert said in done.stdout

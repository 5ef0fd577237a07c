"""The wheel, built as a release builds it and installed where nothing else is: the command works
from it alone, on every Python that the distribution names."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from agentc.resources import DISTRIBUTION
from agentc.runtime.software.interpreter import InterpreterMissingError, find_interpreter

ROOT = Path(__file__).resolve().parents[2]
MINORS = re.findall(
    r"Programming Language :: Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text()
)
SOURCES = (
    "pyproject.toml", "README.md", "LICENSE", "Snakefile", "compiler", "backends", "templates",
    "specs",
)  # fmt: skip
LOCKS = sorted((ROOT / "backends/agentc_backends/software").glob("*.lock"))


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the source distribution and the wheel that is made from it."""
    folder = tmp_path_factory.mktemp("built")
    source = folder / "source"
    source.mkdir()
    for name in SOURCES:  # of a checkout, without what lies in it besides
        if (ROOT / name).is_dir():
            left_out = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, source / name, ignore=left_out)
        else:
            shutil.copyfile(ROOT / name, source / name)
    words = ["-m", "build", "--no-isolation", "--outdir", str(folder / "dist"), str(source)]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return folder / "dist"


def wheel_of(built: Path) -> Path:
    [wheel] = built.glob("*.whl")
    return wheel


@pytest.mark.slow
def test_both_are_named_and_whole(built: Path) -> None:
    name = DISTRIBUTION.replace("-", "_")
    assert {path.name.split("-")[0] for path in built.iterdir()} == {name}
    with zipfile.ZipFile(wheel_of(built)) as wheel:
        held = set(wheel.namelist())
        [said] = [each for each in held if each.endswith(".dist-info/METADATA")]
        metadata = wheel.read(said).decode("utf-8")
    assert f"Name: {DISTRIBUTION}\n" in metadata
    assert "Requires-Python: >=3.11\n" in metadata
    assert {"agentc/py.typed", "agentc_backends/py.typed"} <= held
    shipped = {
        f"agentc/_data/{path.relative_to(ROOT)}"
        for folder in ("templates", "specs")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    locks = {f"agentc_backends/software/{path.name}" for path in LOCKS}
    recipes = "agentc_backends/environments/textcraft/minecraft_recipes"
    assert {f"{recipes}.jsonl", f"{recipes}.LICENSE"} <= held
    assert {"agentc/_data/Snakefile", *shipped, *locks} <= held


@pytest.mark.slow
@pytest.mark.parametrize("python", [MINORS[0], MINORS[-1]])
def test_the_command_works_from_the_wheel_alone(built: Path, python: str, tmp_path: Path) -> None:
    try:
        interpreter = find_interpreter(python)
    except InterpreterMissingError:
        pytest.skip(f"this machine has no Python {python}")
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(*words: str | Path) -> str:
        done = subprocess.run(
            [str(word) for word in words],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            env={**alone, "AGENTC_STORE": str(tmp_path / "store"), "NO_COLOR": "1"},
        )
        assert done.returncode == 0, f"{words}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
        assert "Traceback" not in done.stdout + done.stderr
        return done.stdout + done.stderr

    run(interpreter.path, "-m", "venv", "--without-pip", tmp_path / "venv")
    programs = tmp_path / "venv" / "bin"
    # By what these tests are installed with: to bring a pip of its own takes longer than what is
    # tested, and a pip that is older than the Python fails in it.
    uv = shutil.which("uv", path=Path(sys.executable).parent)
    into = ("--python", programs / "python")
    if uv:
        run(uv, "pip", "install", "--quiet", *into, wheel_of(built))
    else:
        run(sys.executable, "-m", "pip", *into, "install", "--quiet", wheel_of(built))
    where = run(programs / "python", "-c", "import agentc, agentc_backends; print(agentc.__file__)")
    assert str(tmp_path / "venv") in where
    run(programs / "agentc", "init", "mine.yaml", "--from", "quickstart")
    run(programs / "agentc", "check", "mine.yaml")
    plan = run(programs / "agentc", "plan", "mine.yaml")
    assert "sft" in plan
    assert "compare" in plan

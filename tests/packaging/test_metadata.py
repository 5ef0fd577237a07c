"""What the distribution says of itself: one name, one range of Pythons, the same everywhere."""

from __future__ import annotations

import ast
import re
from importlib.metadata import metadata
from pathlib import Path

import pytest

from agentc.resources import DISTRIBUTION, install_command

ROOT = Path(__file__).resolve().parents[2]
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
OLDEST = (3, 11)
PACKAGES = (ROOT / "compiler" / "agentc", ROOT / "backends" / "agentc_backends")
FOLDERS = ("compiler", "backends", "docs", "templates", "specs", "tests", "benchmarks")
TEXTS = (".py", ".md", ".toml", ".yaml", ".txt")
WRITTEN = [
    *(ROOT / name for name in ("README.md", "Makefile", "pyproject.toml")),
    *(path for name in FOLDERS for path in (ROOT / name).rglob("*") if path.suffix in TEXTS),
]


def test_the_installed_distribution_has_the_name_that_messages_give() -> None:
    found = metadata(DISTRIBUTION)
    assert found["Name"] == DISTRIBUTION
    assert install_command("slurm") == f'pip install "{ROOT}[slurm]"'
    assert install_command() == f'pip install "{ROOT}"'
    assert {"slurm", "hub"} <= set(found.get_all("Provides-Extra") or ())


def test_nothing_tells_people_to_install_the_other_product() -> None:
    wrong = re.compile(
        r"""agentc\[(?:run|slurm|hub|dev)\]|dependencies = \["agentc"|install agentc\b"""
    )
    told = [
        f"{path.relative_to(ROOT)}: {line}"
        for path in WRITTEN
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines()
        if wrong.search(line) and path != Path(__file__)
    ]
    assert told == []


@pytest.mark.parametrize(
    ("file", "pattern"),
    [
        ("pyproject.toml", r'requires-python = ">=(3\.\d+)"'),
        ("README.md", r"You need Linux, Python (3\.\d+) or newer"),
        ("docs/cluster.md", r"Python (3\.\d+) or newer"),
        ("docs/backends_guide.md", r'requires-python = ">=(3\.\d+)"'),
        ("tests/third_party/acme/pyproject.toml", r'requires-python = ">=(3\.\d+)"'),
        ("compiler/agentc/emit/bundle.py", r"Python (3\.\d+) or newer"),
    ],
)
def test_one_range_of_pythons_is_stated(file: str, pattern: str) -> None:
    found = re.findall(pattern, (ROOT / file).read_text(encoding="utf-8"))
    assert found == ["{}.{}".format(*OLDEST)]


def test_classifiers_begin_with_the_oldest_python() -> None:
    minors = re.findall(r"Programming Language :: Python :: 3\.(\d+)", PROJECT)
    assert [int(minor) for minor in minors] == list(range(OLDEST[1], OLDEST[1] + len(minors)))
    assert "Typing :: Typed" in PROJECT


def test_no_file_needs_a_newer_syntax() -> None:
    for package in PACKAGES:
        for file in package.rglob("*.py"):
            ast.parse(file.read_text(encoding="utf-8"), str(file), feature_version=OLDEST)


def test_both_packages_are_typed() -> None:
    assert all((package / "py.typed").is_file() for package in PACKAGES)

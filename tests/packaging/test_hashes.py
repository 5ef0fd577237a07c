"""Installing agentc takes nothing from a package index that has no hash, on any road, and nobody is
sent there for a distribution that is not ours."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import tomllib

from agentc.resources import DISTRIBUTION

ROOT = Path(__file__).resolve().parents[2]
LOCKS = sorted((ROOT / "requirements").glob("*.lock"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, tuple[str, ...]] = {
    "agentc": (),
    "run": ("slurm",),
    "development": ("slurm", "dev"),
}
ROADS = ("Makefile", "containers/install.sh", "action.yml")
_PACKAGES_OF_THE_USER = '"${packages[@]}"'


def pinned(lock: Path) -> dict[str, str]:
    """What each requirement of a lock says."""
    text = lock.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {re.split(r"[=<>;\[ ]", line)[0]: line for line in lines}


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_every_requirement_has_a_version_and_a_hash(lock: Path) -> None:
    for name, line in pinned(lock).items():
        assert re.search(rf"^{re.escape(name)}==\S+", line), line
        assert " --hash=sha256:" in line, name
        assert "://" not in line, "no address of an index"


@pytest.mark.parametrize("name", EXTRAS)
def test_a_lock_has_all_that_is_declared(name: str) -> None:
    """`make requirements` writes it again."""
    asked = [*PROJECT["dependencies"]]
    for extra in EXTRAS[name]:
        asked += PROJECT["optional-dependencies"][extra]
    names = {re.split(r"[=<>;\[ ]", line)[0].lower().replace("_", "-") for line in asked}
    assert names <= {*pinned(ROOT / "requirements" / f"{name}.lock")}
    assert "hatchling" in pinned(ROOT / "requirements" / f"{name}.lock")


@pytest.mark.parametrize("road", ROADS)
def test_each_installation_is_hashed_or_takes_nothing_from_an_index(road: str) -> None:
    text = (ROOT / road).read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if not line.strip().startswith("#")]
    found = [line for line in lines if re.search(r"pip\"? install|\$\{pip\[@\]\}", line)]
    assert found
    for line in found:
        if "pip=(" in line or _PACKAGES_OF_THE_USER in line:
            continue
        assert re.search(r"--require-hashes|\$\(HASHED\)|--no-index", line), line


def test_no_page_sends_readers_to_an_index_for_agentc() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    pages += [*(ROOT / "backends").rglob("*.md"), *(ROOT / "compiler").rglob("*.py")]
    told = re.compile(rf"install[^\n]*[\"' ]{DISTRIBUTION}|dependencies = \[[^\]]*{DISTRIBUTION}")
    assert [str(page) for page in pages if told.search(page.read_text(encoding="utf-8"))] == []

"""Demands of installed packages are read for the Python that they are about, which may be older
than the one that reads them, and hold no pip."""

import sys
from pathlib import Path

import pytest

from agentc.runtime.software.interpreter import (
    Package,
    PackageList,
    list_installed,
    missing_requirements,
    packages_refusing_python,
    versions_of,
)

OLD = {"python_version": "3.8", "python_full_version": "3.8.20", "sys_platform": "linux"}


def environment(*packages: Package) -> PackageList:
    here = list_installed(sys.executable)
    return PackageList({**here.markers, **OLD}, list(packages))


def test_a_marker_is_read_for_the_python_that_was_built() -> None:
    found = missing_requirements(
        environment(
            Package("a", "1", ["b>=2; python_version < '3.9'", "c; python_version >= '3.9'"], None)
        )
    )
    assert found == {"b": "b>=2"}


def test_an_extra_is_asked_for_by_another_package() -> None:
    asks = Package("a", "1", ["B_b[fast]"], None)
    address = "quick @ https://example.org/q.whl ; extra == 'fast'"
    has = Package("b-b", "1", [address, "z; extra == 'w'"], None)
    assert missing_requirements(environment(asks, has)) == {"quick": "quick"}


@pytest.mark.parametrize(("demand", "refused"), [(">=3.8", False), (">=3.9", True), (None, False)])
def test_a_package_refuses_a_python(demand: str | None, refused: bool) -> None:
    found = packages_refusing_python(environment(Package("a", "1", [], demand)))
    assert found == ([("a", demand)] if refused else [])


def test_a_package_listed_by_an_environment_without_pip(tmp_path: Path) -> None:
    import venv

    venv.create(tmp_path, with_pip=False)
    site = next(tmp_path.glob("lib/python*/site-packages"))
    (site / "alone-2.dist-info").mkdir()
    (site / "alone-2.dist-info/METADATA").write_text(
        "Metadata-Version: 2.1\nName: alone\nVersion: 2\nRequires-Dist: absent>1\n"
        "Requires-Python: <3\n"
    )
    found = list_installed(str(tmp_path / "bin/python"))
    assert versions_of(found) == {"alone": "2"}
    assert missing_requirements(found) == {"absent": "absent>1"}
    assert packages_refusing_python(found) == [("alone", "<3")]

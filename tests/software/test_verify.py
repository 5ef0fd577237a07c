"""Verifying finds what changed in a built environment, by file and by package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from wheels import addressed, write_wheel

from agentc.runtime.software.job_software import ensure_software
from agentc.runtime.store.layout import StoreLayout
from agentc.software.inventory import Installed, list_installed
from agentc.software.requirements import Needed
from agentc.software.verify import verify_software


def only(layout: StoreLayout) -> Installed:
    (one,) = list_installed(layout, [])
    return one


def test_an_environment_as_it_was_built_is_whole(layout: StoreLayout, built: Path) -> None:
    assert verify_software(only(layout), imports=True) == ()


def test_a_changed_and_a_missing_file_are_named(layout: StoreLayout, built: Path) -> None:
    (module,) = built.glob("lib/python3*/site-packages/tinything.py")
    module.write_text("VALUE = 43\n")
    assert verify_software(only(layout)) == ("tinything: tinything.py was changed",)
    module.unlink()
    assert verify_software(only(layout)) == ("tinything: tinything.py is missing",)


@pytest.mark.slow
def test_compiled_files_may_be_written_anew(layout: StoreLayout, tmp_path: Path) -> None:
    files = {"odd.py": "", "__pycache__/odd.cpython-311.pyc": "compiled elsewhere"}
    wheel = write_wheel(tmp_path, "odd", "1", files)
    one = Needed(name="odd", lock=f"{addressed('odd', wheel)}\n")
    directory, _ = ensure_software(layout, one.sha256, one.lock)
    (compiled,) = directory.glob("lib/python3*/site-packages/__pycache__/odd.cpython-311.pyc")
    compiled.write_text("compiled here")
    assert verify_software(only(layout)) == ()


@pytest.mark.slow
def test_packages_added_and_removed_behind_its_back_are_named(
    layout: StoreLayout, built: Path, tmp_path: Path
) -> None:
    wheel = write_wheel(tmp_path, "sneaked", "9", {"sneaked.py": ""})
    pip = [sys.executable, "-m", "pip", "--python", str(built / "bin/python"), "--quiet"]
    subprocess.run([*pip, "install", "--no-index", str(wheel)], check=True)
    subprocess.run([*pip, "uninstall", "--yes", "tinything"], check=True)
    assert set(verify_software(only(layout))) == {
        "sneaked 9 was added after it was built",
        "tinything 1.2 was installed and is gone",
        "tinything is pinned by the lock and is not installed",
    }


def test_an_interpreter_that_is_gone(layout: StoreLayout, built: Path) -> None:
    python = built / "bin" / "python"
    python.unlink()
    python.symlink_to("/nowhere/python3")
    assert only(layout).state == "no interpreter"
    (problem,) = verify_software(only(layout))
    assert problem.startswith("its interpreter cannot be started")


@pytest.mark.slow
def test_a_package_that_cannot_be_imported(layout: StoreLayout, tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path, "broken", "1", {"broken.py": "import nothing_such\n"})
    one = Needed(name="broken", lock=f"{addressed('broken', wheel)}\n")
    ensure_software(layout, one.sha256, one.lock)
    assert verify_software(only(layout)) == ()
    (problem,) = verify_software(only(layout), imports=True)
    assert problem.startswith("broken: `import broken` fails: ModuleNotFoundError")


def test_a_half_built_one_says_so(layout: StoreLayout) -> None:
    (layout.software / ("0" * 16)).mkdir(parents=True)
    assert verify_software(only(layout)) == ("it is half-built",)


@pytest.mark.parametrize("name", ["tiny", "digest"])
def test_found_by_name_and_by_digest(
    layout: StoreLayout, built: Path, tiny: Needed, name: str
) -> None:
    from agentc.software.inventory import find_installed

    found = list_installed(layout, [tiny])
    wanted = tiny.name if name == "tiny" else tiny.sha256[:8]
    assert [one.path for one in find_installed(found, wanted)] == [built]
    assert find_installed(found, tiny.sha256[:3]) == []
    assert found[0].users == ("acme.sft",)

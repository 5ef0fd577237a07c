"""Software stacks: built from a lock, once, and never used half-built."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.support.patience import wait_for
from wheels import addressed, pinned, write_wheel

from agentc.backend_api import Software
from agentc.runtime.software.interpreter import InterpreterMissingError, find_interpreter
from agentc.runtime.software.job_software import (
    SoftwareError,
    code_directory,
    ensure_software,
    read_complete,
)
from agentc.runtime.software.lock_text import lock_digest
from agentc.runtime.store.layout import StoreLayout


@pytest.fixture
def layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StoreLayout:
    monkeypatch.delenv("AGENTC_SOFTWARE")
    return StoreLayout(tmp_path / "store")


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_lock_is_installed_and_recorded(layout: StoreLayout, tiny_wheel: Path) -> None:
    lock = f"{addressed('tinything', tiny_wheel)}\n"
    lines: list[str] = []
    directory, known = ensure_software(layout, sha256(lock), lock, lines.append)
    assert directory == layout.root / "software" / sha256(lock)[:16]
    assert known["versions"] == {"tinything": "1.2"}
    assert known == read_complete(directory)
    argv = [str(directory / "bin" / "python"), "-c", "import tinything; print(tinything.VALUE)"]
    assert subprocess.run(argv, capture_output=True, check=True).stdout == b"42\n"
    assert any("1 packages" in line for line in lines)
    again: list[str] = []
    ensure_software(layout, sha256(lock), lock, again.append)
    assert again == []


def test_lock_that_cannot_be_installed_says_what_pip_said(layout: StoreLayout) -> None:
    missing = "file:///nowhere/tinything-1.2-py3-none-any.whl"
    lock = f"tinything @ {missing} --hash=sha256:{'0' * 64}\n"
    with pytest.raises(SoftwareError, match=r"nowhere/tinything"):
        ensure_software(layout, sha256(lock), lock)
    assert read_complete(layout.software_stack(sha256(lock))) is None


@pytest.mark.slow
def test_half_built_environment_is_built_again(layout: StoreLayout, tiny_wheel: Path) -> None:
    lock = f"{addressed('tinything', tiny_wheel)}\n"
    half = layout.software_stack(sha256(lock))
    (half / "bin").mkdir(parents=True)
    (half / "bin" / "python").write_text("not an interpreter")
    (half / "left").write_text("x")
    ensure_software(layout, sha256(lock), lock)
    assert not (half / "left").exists()


@pytest.mark.slow
def test_killed_build_is_never_used(layout: StoreLayout, tiny_wheel: Path, tmp_path: Path) -> None:
    lock = f"{addressed('tinything', tiny_wheel)}\n"
    script = (
        "import sys; from agentc.runtime.software.job_software import ensure_software as e;"
        "from agentc.runtime.store.layout import StoreLayout as S;"
        "e(S(sys.argv[1]), *sys.argv[2:4])"
    )
    argv = [sys.executable, "-c", script, str(layout.root), sha256(lock), lock]
    directory = layout.software_stack(sha256(lock))
    for moment in (0.05, 0.3):
        process = subprocess.Popen(argv)
        wait_for(directory.exists)
        time.sleep(moment)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert subprocess.run(argv, check=True).returncode == 0
    known = read_complete(directory)
    assert known is not None
    assert known["versions"] == {"tinything": "1.2"}


@pytest.mark.slow
def test_concurrent_builders_build_once(layout: StoreLayout, tiny_wheel: Path) -> None:
    lock = f"{addressed('tinything', tiny_wheel)}\n"
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(ensure_software(layout, sha256(lock), lock)))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({json.dumps(known, sort_keys=True) for _, known in found}) == 1


@pytest.mark.slow
def test_shared_folder_serves_two_stores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny_wheel: Path
) -> None:
    monkeypatch.setenv("AGENTC_SOFTWARE", str(tmp_path / "shared"))
    lock = f"{addressed('tinything', tiny_wheel)}\n"
    one, _ = ensure_software(StoreLayout(tmp_path / "a"), sha256(lock), lock)
    two, _ = ensure_software(StoreLayout(tmp_path / "b"), sha256(lock), lock)
    assert one == two
    assert one.parent == tmp_path / "shared"


def test_code_directory_holds_links_to_the_packages(layout: StoreLayout) -> None:
    import agentc

    directory = code_directory(layout, ["agentc"])
    assert (directory / "agentc").resolve() == Path(agentc.__file__).parent
    assert code_directory(layout, ["agentc"]) == directory
    script = "import agentc.program.job as p; print(p.__name__)"
    done = subprocess.run(
        [sys.executable, "-S", "-c", script],
        env={"PYTHONPATH": str(directory), "PATH": os.environ["PATH"]},
        capture_output=True,
        check=False,
    )
    assert done.stdout == b"agentc.program.job\n"


def test_code_directory_joins_the_parts_of_a_namespace_and_takes_modules(
    layout: StoreLayout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for part in ("one", "two"):
        package = tmp_path / part / "shared_name" / part
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(f"NAME = {part!r}\n")
        monkeypatch.syspath_prepend(str(tmp_path / part))
    (tmp_path / "one" / "alone_here.py").write_text("NAME = 'alone'\n")
    directory = code_directory(layout, ["shared_name", "alone_here"])
    script = (
        "import alone_here, shared_name.one, shared_name.two;"
        "print(alone_here.NAME, shared_name.one.NAME, shared_name.two.NAME)"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", script],
        env={"PYTHONPATH": str(directory), "PATH": os.environ["PATH"]},
        capture_output=True,
        check=False,
    )
    assert done.stdout == b"alone one two\n", done.stderr


def test_package_that_is_not_installed_is_named(layout: StoreLayout) -> None:
    with pytest.raises(SoftwareError, match="the Python package no_such_backend"):
        code_directory(layout, ["no_such_backend"])


def test_a_program_that_this_version_lacks_is_named(layout: StoreLayout) -> None:
    """Another version of agentc made the plan."""
    gone = "agentc.runtime.no_such_job"
    with pytest.raises(SoftwareError, match=f"{gone}.*compile the spec again"):
        code_directory(layout, ["agentc.runtime.job", gone])


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A package that is built from source: its build imports tinything and reads a variable."""
    folder = tmp_path / "builtthing"
    folder.mkdir()
    (folder / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        '[project]\nname = "builtthing"\nversion = "3"\n'
    )
    (folder / "backend.py").write_text(
        "import os, zipfile\n"
        "def build_wheel(to, config_settings=None, metadata_directory=None):\n"
        "    import tinything\n"
        "    name = 'builtthing-3-py3-none-any.whl'\n"
        "    info = 'builtthing-3.dist-info/'\n"
        "    with zipfile.ZipFile(os.path.join(to, name), 'w') as out:\n"
        "        out.writestr('builtthing.py', 'OPS = %r' % os.environ.get('TINY_OPS'))\n"
        "        out.writestr(info + 'METADATA', 'Metadata-Version: 2.1\\nName: builtthing\\n'\n"
        "            'Version: 3\\nRequires-Python: <3\\nRequires-Dist: tinything>=9\\n'\n"
        "            'Requires-Dist: heavy-thing\\n')\n"
        "        out.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\n'\n"
        "            'Tag: py3-none-any\\n')\n"
        "        out.writestr(info + 'RECORD', '')\n"
        "    return name\n"
    )
    return folder


@pytest.mark.slow
def test_lock_that_pip_would_not_resolve_is_installed_in_steps(
    layout: StoreLayout, tiny_wheel: Path, source: Path
) -> None:
    """A package built from source beside what its build imports, whose metadata refuses this
    Python and contradicts the pins, and which asks for one that is left out on purpose."""
    lock = (
        "# agentc: without heavy_thing\n"
        "# agentc: unverified builtthing\n"
        f"{addressed('tinything', tiny_wheel)}\n"
        "# agentc: then --no-build-isolation --ignore-requires-python TINY_OPS=0\n"
        f"builtthing @ file://{source}\n"
    )
    directory, known = ensure_software(layout, sha256(lock), lock)
    assert known["versions"] == {"builtthing": "3", "tinything": "1.2"}
    assert known["complete"]
    argv = [str(directory / "bin" / "python"), "-c", "import builtthing; print(builtthing.OPS)"]
    assert subprocess.run(argv, capture_output=True, check=True).stdout == b"0\n"


@pytest.mark.slow
def test_package_that_refuses_this_python_is_explained(
    layout: StoreLayout, tiny_wheel: Path, source: Path
) -> None:
    lock = (
        "# agentc: unverified builtthing\n"
        f"{addressed('tinything', tiny_wheel)}\n"
        "# agentc: then --no-build-isolation\n"
        f"builtthing @ file://{source}\n"
    )
    with pytest.raises(SoftwareError) as caught:
        ensure_software(layout, sha256(lock), lock)
    assert "does not take Python" in str(caught.value)
    assert "# agentc: then --ignore-requires-python" in str(caught.value)


@pytest.mark.parametrize(
    "minor",
    [
        8,
        *(
            pytest.param(n, marks=pytest.mark.slow)
            for n in range(9, 14)
            if n != sys.version_info[1]
        ),
    ],
)
def test_environment_of_another_interpreter(
    layout: StoreLayout, tiny_wheel: Path, minor: int
) -> None:
    try:
        find_interpreter(f"3.{minor}")
    except InterpreterMissingError:
        pytest.skip(f"this machine has no Python 3.{minor}")
    lock = Software(name="old", lock=f"{addressed('tinything', tiny_wheel)}\n", python=f"3.{minor}")
    directory, known = ensure_software(layout, sha256(lock.text), lock.text)
    assert known["python"].startswith(f"3.{minor}.")
    assert known["versions"] == {"tinything": "1.2"}
    code = "import sys, tinything; print(sys.version_info[1], tinything.VALUE)"
    argv = [str(directory / "bin" / "python"), "-c", code]
    assert subprocess.run(argv, capture_output=True, check=True).stdout.decode() == f"{minor} 42\n"


def test_environment_whose_interpreter_is_missing_here(layout: StoreLayout) -> None:
    directory, known = ensure_software(layout, sha256(""), "")
    python = directory / "bin" / "python"
    python.unlink()
    python.symlink_to("/nowhere/python3")
    elsewhere = {**known, "host": "another-machine", "interpreter": "/opt/python3.11"}
    (directory / "complete.json").write_text(json.dumps(elsewhere))
    with pytest.raises(SoftwareError, match="was built on another-machine with /opt/"):
        ensure_software(layout, sha256(""), "")
    (directory / "complete.json").write_text(json.dumps(known))  # built here: made anew
    again, _ = ensure_software(layout, sha256(""), "")
    assert read_complete(again) is not None


@pytest.mark.slow
def test_what_packages_ask_for_beyond_the_lock_is_added_extras_included(
    layout: StoreLayout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As torch's wheels for GPUs do: `cuda-toolkit[cublas]==13.0`, whose extra brings more."""
    index = tmp_path / "wheels"
    index.mkdir()
    asks = "Requires-Dist: toolkit[fast]==2 ; python_version >= '3'\n"
    asks += "Requires-Dist: never ; extra == 'x'\n"
    torch = write_wheel(tmp_path, "notorch", "1", {"notorch.py": ""}, asks)
    extra = "Provides-Extra: fast\nRequires-Dist: library>=1 ; extra == 'fast'\n"
    asked = [
        pinned("toolkit", "2", write_wheel(index, "toolkit", "2", {"toolkit.py": ""}, extra)),
        pinned(
            "library",
            "3",
            write_wheel(index, "library", "3", {"library.py": ""}, "Requires-Dist: left-out\n"),
        ),
    ]
    lock = f"--no-index\n--find-links {index}\n# agentc: without left_out\n"
    lock += addressed("notorch", torch) + "\n"
    whole = lock + "# agentc: if-asked\nunused==1 --hash=sha256:" + "0" * 64 + "\n"
    whole += "\n".join(asked) + "\n"
    _, known = ensure_software(layout, lock_digest(whole), whole)
    assert known["versions"] == {"library": "3", "notorch": "1", "toolkit": "2"}
    assert known["complete"]
    assert lock_digest(whole) == lock_digest(lock)  # what it asks for follows from its pins
    bare = lock.replace("# agentc: without left_out\n", "")
    _, known = ensure_software(layout, sha256(bare), bare)
    assert not known["complete"]  # said, and no reason to fail: it may never be imported


@pytest.mark.slow
def test_a_partial_lock_is_completed_by_what_it_has_for_that_alone(
    layout: StoreLayout, tmp_path: Path
) -> None:
    """As vLLM's CPU build beside a torch for CUDA: its libraries, but nothing that was left out."""
    index = tmp_path / "wheels"
    index.mkdir()
    asks = "Requires-Dist: library==3\nRequires-Dist: left-out\n"
    torch = write_wheel(tmp_path, "notorch", "1", {"notorch.py": ""}, asks)
    library = write_wheel(index, "library", "3", {"library.py": ""}, "Requires-Dist: unheard-of\n")
    lock = f"--no-index\n--find-links {index}\n# agentc: partial\n{addressed('notorch', torch)}\n"
    _, known = ensure_software(layout, lock_digest(lock), lock)
    assert known["versions"] == {"notorch": "1"}
    lock += "# an identity of its own\n"
    lock += f"# agentc: if-asked\n{pinned('library', '3', library)}\n"
    _, known = ensure_software(layout, lock_digest(lock), lock)
    assert known["versions"] == {"library": "3", "notorch": "1"}
    assert known["complete"]


def test_an_interpreter_that_cannot_be_looked_at_is_not_there(tmp_path: Path) -> None:
    """As another user's is, whose home is closed; a name that is too long is root's case of it."""
    (tmp_path / "complete.json").write_text("{}")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to("x" * 300)
    with pytest.raises(OSError, match="too long"):
        (tmp_path / "bin" / "python").stat()
    assert read_complete(tmp_path) is None

"""A store that a group shares: what one user made, others read, go on with, and clear away."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.patience import PATIENCE_S, wait_for
from tiny_plan import TinyPlan

ALICE, BOB, EVE, LAB = 61001, 61002, 61003, 61000

REPOSITORY = Path(__file__).parents[2]
SYSTEM = Path("/usr/bin/python3")
"""A Python that every user may start; the runtime needs nothing but its standard library."""


def why_impossible() -> str | None:
    if os.getuid() != 0:
        return "needs root, to be several users"
    if not SYSTEM.exists():
        return f"needs {SYSTEM}, a Python for all users"
    words = [str(SYSTEM), "-c", "import agentc.runtime.job, venv, ensurepip"]
    done = subprocess.run(
        words, user=ALICE, group=LAB, extra_groups=[], cwd="/", check=False, capture_output=True,
        env={"PATH": os.defpath, "PYTHONPATH": str(REPOSITORY / "compiler")},
    )  # fmt: skip
    return (
        None if done.returncode == 0 else "other users cannot read the repository or have no venv"
    )


pytestmark = pytest.mark.skipif(
    why_impossible() is not None, reason=f"several users: {why_impossible()}"
)


@pytest.fixture
def shared() -> Iterator[TinyPlan]:
    """A store of the group LAB, as docs/design/shared_store.md says to set one up. Every session of
    pytest closes the folder of `tmp_path` to other users."""
    folder = Path(tempfile.mkdtemp(prefix="agentc-group-"))
    folder.chmod(0o755)
    plan = TinyPlan(folder)
    plan.store.mkdir()
    os.chown(plan.store, ALICE, LAB)
    plan.store.chmod(0o2770)
    yield plan
    shutil.rmtree(folder)


def start(plan: TinyPlan, user: int, job: str, *, group: int = LAB) -> subprocess.Popen[str]:
    plan.write()
    return subprocess.Popen(
        [str(SYSTEM), *plan.argv(job)[1:]], user=user, group=group, extra_groups=[], umask=0o077,
        text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd="/", env=variables(plan),
    )  # fmt: skip


def variables(plan: TinyPlan) -> dict[str, str]:
    return {
        "PATH": os.defpath,
        "HOME": "/nonexistent",
        "PYTHONPATH": str(REPOSITORY / "compiler"),
        "AGENTC_SOFTWARE": str(plan.folder.parent / "software"),
    }


def run(plan: TinyPlan, user: int, job: str, **words: int) -> tuple[int, str]:
    process = start(plan, user, job, **words)
    said, _ = process.communicate(timeout=PATIENCE_S)
    return process.returncode, said


def test_users_of_a_group_share_a_store(shared: TinyPlan) -> None:
    shared.job("first", rows=40, hold_after=5)
    shared.job("second", rows=1, inputs={"x": ["first"]}, kind="pair")
    # The software stack is made by whoever comes first.
    shared.job("empty", rows=1)
    code, said = run(shared, 0, "empty")
    assert code == 0, said
    process = start(shared, ALICE, "first")
    kept = shared.staging("first") / "work" / "rows.jsonl"
    wait_for(
        lambda: (
            process.poll() is not None or (kept.exists() and len(kept.read_text().splitlines()) > 3)
        )
    )
    assert process.poll() is None, process.communicate()[0]
    process.kill()
    process.communicate()
    before = kept.read_text().splitlines()[:3]
    # Another goes on with what she staged, although her umask would keep all of it to herself.
    code, said = run(shared, BOB, "first")
    assert code == 0, said
    folder = shared.store / "objects" / shared.object("first")
    assert (folder / "data" / "trajectories.jsonl").read_text().splitlines()[:3] == before
    code, said = run(shared, ALICE, "second")
    assert code == 0, said
    for path in (folder, *folder.rglob("*")):
        state = path.stat()
        assert state.st_gid == LAB, path
        mode = stat.S_IMODE(state.st_mode)
        assert mode & 0o007 == 0, path
        if path.is_dir():
            assert mode & 0o070 == 0o070, (path, oct(mode))
        else:
            assert mode & 0o440 == 0o440, (path, oct(mode))
            # Read-only, but for what the first user made: only she could change that.
            assert mode & 0o222 == 0 or state.st_uid == ALICE, (path, oct(mode))
    # And either may clear away what the other made.
    script = (
        "import sys\n"
        "from agentc.runtime.store.layout import StoreLayout\n"
        "from agentc.store.gc import collect, find_garbage\n"
        "layout = StoreLayout(sys.argv[1])\n"
        "print(collect(layout, find_garbage(layout)))\n"
    )
    done = subprocess.run(
        [str(SYSTEM), "-c", script, str(shared.store)], user=ALICE, group=LAB, extra_groups=[],
        capture_output=True, text=True, check=False, cwd="/", umask=0o077, env=variables(shared),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not folder.exists()


def test_who_does_not_belong_to_the_group_is_told_what_is_missing(shared: TinyPlan) -> None:
    shared.store.chmod(0o2775)
    shared.job("first", rows=1)
    code, said = run(shared, 0, "first")
    assert code == 0, said
    shared.job("second", rows=1)
    code, said = run(shared, EVE, "second", group=EVE)
    assert code == 1
    assert "Traceback" not in said
    assert "cannot write" in said
    assert "EACCES" in said
    assert "chgrp -R GROUP" in said


def test_an_interpreter_that_a_user_may_not_execute_is_named(shared: TinyPlan) -> None:
    """Its environment was built with a Python in somebody's home directory."""
    shared.job("first", rows=1)
    shared.job("second", rows=1, say="second")
    code, said = run(shared, 0, "first")
    assert code == 0, said
    home = shared.folder.parent / "home"
    home.mkdir(mode=0o700)
    (home / "python3").symlink_to(SYSTEM)
    (python,) = (shared.folder.parent / "software").glob("*/bin/python3")
    python.unlink()
    python.symlink_to(home / "python3")
    code, said = run(shared, ALICE, "second")
    assert code == 1
    assert "Traceback" not in said
    assert f"may not execute {home / 'python3'} ({home} is drwx------ root:" in said
    assert "AGENTC_SOFTWARE names the folder" in said
    assert python.readlink() == home / "python3", "root's environment was built again"

"""Removing: what is used stays, what is at work is refused, and nothing is ever half there."""

from __future__ import annotations

import fcntl
import os
import subprocess
from pathlib import Path

import pytest

from agentc.runtime.software.job_software import read_complete
from agentc.runtime.store.layout import StoreLayout
from agentc.software.inventory import (
    SoftwareInUseError,
    list_installed,
    remove_software,
    unused,
)
from agentc.software.requirements import Needed


def test_unused_is_what_nobody_names_and_nobody_used_lately(
    layout: StoreLayout, built: Path, tiny: Needed
) -> None:
    assert unused(list_installed(layout, [])) == ()
    month_ago = (built / "complete.json").stat().st_mtime - 31 * 86400
    os.utime(built / "complete.json", (month_ago, month_ago))
    assert unused(list_installed(layout, [tiny])) == ()
    assert [one.path for one in unused(list_installed(layout, []))] == [built]


def test_half_built_ones_are_unused_at_once_unless_somebody_builds(layout: StoreLayout) -> None:
    half = layout.software / ("0" * 16)
    half.mkdir(parents=True)
    assert [one.path for one in unused(list_installed(layout, []))] == [half]
    with half.with_name(half.name + ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert list_installed(layout, [])[0].state == "being built"
        assert unused(list_installed(layout, [])) == ()
        with pytest.raises(SoftwareInUseError, match="being built"):
            remove_software(list_installed(layout, [])[0])


def test_one_that_a_process_runs_in_is_refused(layout: StoreLayout, built: Path) -> None:
    argv = [str(built / "bin" / "python"), "-c", "print('here', flush=True); input()"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()  # before that it may not run in there yet
        with pytest.raises(SoftwareInUseError, match=f"process {process.pid} runs in"):
            remove_software(list_installed(layout, [])[0])
        process.communicate(b"\n")
    remove_software(list_installed(layout, [])[0])
    assert read_complete(built) is None
    assert [path.suffix for path in layout.software.iterdir()] == [".lock"]

"""A cluster's nodes have to see the store: which file systems other machines do not."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from agentc.placement.profile import Profile
from agentc.preflight import offline
from agentc.runtime.store import file_system
from agentc.runtime.store.layout import StoreLayout

SLURM = Profile(name="ours", file=Path("config.yaml"), settings={"executor": "slurm"})


@pytest.mark.parametrize(
    ("kind", "verdict", "patience"),
    [("zfs", "warning", 0), ("f2fs", "warning", 0), ("vfat", "warning", 0), ("ext4", "warning", 0),
     ("nfs4", "ok", 60), ("lustre", "ok", 60)],
)  # fmt: skip
def test_preflight_and_runtime_agree(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str, verdict: str, patience: int
) -> None:
    table = tmp_path / "mountinfo"
    point = str(tmp_path / "a store").replace(" ", "\\040")
    table.write_text(
        "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
        f"21 20 0:40 / {point} rw,relatime shared:1 - {kind} somewhere rw\n"
    )
    monkeypatch.setattr(file_system, "MOUNTS", table)
    monkeypatch.delenv(file_system.VISIBLE_VARIABLE, raising=False)
    layout = StoreLayout(tmp_path / "a store" / "store")
    (tmp_path / "a store").mkdir()
    assert file_system.mounted_file_system(layout.root) == (kind, str(tmp_path / "a store"))
    assert [each.verdict for each in offline.check_shared(layout, SLURM)] == [verdict]
    assert file_system.visibility_timeout(layout) == patience


def test_a_system_that_lists_no_mounts_is_waited_for_as_a_shared_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without /proc/self/mountinfo nobody knows that the store is of this machine alone."""
    monkeypatch.setattr(file_system, "MOUNTS", tmp_path / "mountinfo")
    monkeypatch.delenv(file_system.VISIBLE_VARIABLE, raising=False)
    assert file_system.mounted_file_system(tmp_path) == ("", "")
    assert file_system.visibility_timeout(StoreLayout(tmp_path / "store")) == 60
    refused = file_system.explain(OSError(errno.EROFS, "read-only"), "results", tmp_path)
    assert "(EROFS; unknown at ?)" in refused

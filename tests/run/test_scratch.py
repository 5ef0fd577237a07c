"""Caches and temporary files of Snakemake lie in the run's scratch folder; jobs see the user's own
folders, and of a run that was killed the next one removes what is left."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from tests.support.patience import wait_for
from tiny_plan import TinyPlan

from agentc.run.snakemake_process import remove_leftovers, scratch_folder
from agentc.runtime.software import variables


@pytest.mark.parametrize(
    "before", [{}, {"XDG_CACHE_HOME": "/home/me/cache"}, {"TMPDIR": "/big", "HOME": "/home/me"}]
)
def test_jobs_get_back_what_the_user_had(before: dict[str, str]) -> None:
    moved = variables.moved_to("/plan/.snakemake/agentc-a1", before)
    assert moved["XDG_CACHE_HOME"] == moved["TMPDIR"] == "/plan/.snakemake/agentc-a1"
    moved |= {"TMP": moved["TMPDIR"], "TEMP": moved["TMPDIR"]}  # as Snakemake does for a shell
    variables.restore(moved)
    own = {name: value for name, value in moved.items() if name not in ("TMP", "TEMP")}
    assert own == before
    assert moved.get("TMP") == before.get("TMPDIR")


def test_a_folder_that_the_cluster_gives_a_job_stays() -> None:
    moved = variables.moved_to("/plan/x", {"TMPDIR": "/tmp"}) | {"TMPDIR": "/scratch/job17"}
    variables.restore(moved)
    assert moved == {"TMPDIR": "/scratch/job17"}


def test_leftovers_of_live_runs_stay(tmp_path: Path) -> None:
    for name in ("agentc-dead", "agentc-live", "tmp.abc", "log"):
        (tmp_path / ".snakemake" / name).mkdir(parents=True)
    remove_leftovers(tmp_path, {"live"})
    assert {each.name for each in (tmp_path / ".snakemake").iterdir()} == {
        "agentc-live", "tmp.abc", "log",
    }  # fmt: skip
    remove_leftovers(tmp_path, set())
    assert {each.name for each in (tmp_path / ".snakemake").iterdir()} == {"log"}


@pytest.mark.slow
def test_nothing_is_left_after_a_run_and_after_a_killed_one(
    plan: TinyPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, temporary = tmp_path / "home", tmp_path / "temporary"
    for folder in (home, temporary):
        folder.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    plan.job("long", rows=100, delay=0.1, resume=True)
    process = plan.start_all()
    wait_for(lambda: plan.status("long").get("state") == "running")
    (own,) = (plan.folder / ".snakemake").glob("agentc-*")
    assert any(own.iterdir()), "Snakemake keeps its files there"
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert own.exists(), "of a killed run it stays"
    again = plan.start_all()
    wait_for(lambda: not own.exists())
    again.send_signal(signal.SIGTERM)
    again.communicate()
    assert not list((plan.folder / ".snakemake").glob("agentc-*"))
    assert not (home / ".cache" / "snakemake").exists()
    assert list(temporary.glob("snakemake*")) == []
    assert scratch_folder(plan.folder, "x").name == "agentc-x"

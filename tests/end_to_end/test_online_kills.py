"""Online runs under `agentc run`, killed at random moments and in each phase, and cut by time
limits: each ends with the bytes of an undisturbed one, all but the seconds.

`AGENTC_KILLS=200 AGENTC_KILL_SEED=1 pytest -m long -s tests/end_to_end/test_online_kills.py` says
what was hit; single jobs are killed in `tests/torch/online_rl/test_run.py`.
"""

from __future__ import annotations

import itertools
import math
import shutil
import subprocess
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import pytest
from kills import assert_clean, dice, kills_wanted
from online_kills import (
    ANYWHERE,
    CHECKING,
    PUBLISHING,
    SAVING,
    WRITING,
    Before,
    Strikes,
    assert_nothing_left,
)
from online_runs import Calm, OnlineJob, calm_run
from smoke import require_software
from tests.support.patience import PATIENCE_S
from tests.support.run_digests import digests

pytestmark = [pytest.mark.slow, pytest.mark.long]

PHASES = {
    "archer": ("collect", "critic", "actor", "mark"),
    "filtered_bc": ("collect", "actor"),
    "grpo": ("collect", "actor"),
}
_LAST = (WRITING, CHECKING, PUBLISHING)
_MOST_KILLS = 8
"""Of one run, which goes on to its end after so many."""
_ITERATIONS = 4
"""Of the spec, where it is told nothing else."""
_LIMITS = 5
_UNMEASURED_SAVE_S = 10.0
"""What a run keeps for its first save."""


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Calm]:
    """The undisturbed run of a stage; all of them in one store."""
    require_software("trl.online_rl")
    store = tmp_path_factory.mktemp("calm") / "store"
    return cache(partial(calm_run, store))


def test_kills_change_nothing(calm: Callable[[str], Calm], tmp_path: Path) -> None:
    """One after another or at once: the next run begins when the last one is over, or while what is
    left of it still dies."""
    wanted, strikes = kills_wanted(9), Strikes(dice())
    stages = itertools.cycle(PHASES)
    for number in itertools.count():
        if strikes.made.total() >= wanted:
            print(f"{strikes.made.total()} kills in {number} runs, {strikes.missed} missed")
            print(strikes.table())
            return
        before = calm(next(stages))
        job = before.job.again(tmp_path / str(number))
        most = min(_MOST_KILLS, wanted - strikes.made.total(), -(-wanted // len(PHASES)))
        disturb(job, before, most, strikes)
        assert digests(job.folder) == digests(before.job.folder)
        shutil.rmtree(job.store)


def disturb(job: OnlineJob, calm: Calm, most: int, strikes: Strikes) -> None:
    """Kill a run up to so many times, then let it end. Nothing may be left of it."""
    chance, said = strikes.chance, job.store / "said.txt"
    aims = (ANYWHERE, ANYWHERE, SAVING, *PHASES[job.stage], *_LAST)
    runs: list[subprocess.Popen[bytes]] = []
    # Behind a kill of the last kind nothing else comes again.
    for aim in sorted(chance.choices(aims, k=most), key=_LAST.__contains__):
        before = Before.now(job)
        runs.append(job.start(said))
        hit = strikes.hit(runs[-1], job, before, aim, calm)
        at_once = chance.random() < 0.5
        print(strikes.made.total(), job.stage, aim, hit, "at once" if at_once else "", flush=True)
        if hit is None:
            break
        if not at_once:
            assert_nothing_left(job.store, runs)
            runs.clear()
    runs.append(job.start(said))
    assert runs[-1].wait(timeout=PATIENCE_S) == 0, said.read_text()
    assert_nothing_left(job.store, runs)
    assert_clean(job.store)
    assert "\nTraceback" not in said.read_text()


@pytest.mark.parametrize("stage", PHASES)
def test_time_limits_change_nothing(
    calm: Callable[[str], Calm], tmp_path: Path, stage: str
) -> None:
    """At least five of them, each of which saves something; where there were fewer, once more with
    shorter ones. The run is long beside what the first limit has to leave for a save."""
    short = calm(stage)
    longer = math.ceil(6 * _UNMEASURED_SAVE_S / short.phases_s)
    words = ("-p", f"iterations={longer * _ITERATIONS}")
    whole = calm_run(short.job.again(tmp_path / "whole").store, stage, *words)
    part = whole.phases_s / (_LIMITS + 2)
    for number in itertools.count():
        job = whole.job.again(tmp_path / str(number))
        cuts = limited(job, 0.6 * whole.rest_s, part)
        print(f"{stage}: {cuts} limits", flush=True)
        assert digests(job.folder) == digests(whole.job.folder)
        if cuts >= _LIMITS:
            break
        part /= 2


def limited(job: OnlineJob, start_s: float, part_s: float) -> int:
    """Run it with limits of so many seconds for its start and a part of its work; how many cut it
    off with something saved since the one before. What a start takes changes with what else the
    machine does: where a run got nowhere, the next has longer, and else a little less."""
    said, cuts, known = job.store / "said.txt", 0, -1.0
    save_s = _UNMEASURED_SAVE_S
    while True:
        stop_by = time.time() + start_s + part_s + save_s
        status = job.start(said, AGENTC_STOP_BY=str(stop_by)).wait(timeout=PATIENCE_S)
        if status == 0:
            return cuts
        assert "it stopped before its time limit" in said.read_text()
        states = (job.staging / "work").glob("state-*")
        saved = max((path.stat().st_mtime for path in states), default=-1.0)
        if saved <= known:
            start_s += 1 + part_s
            continue
        start_s -= part_s / 4
        cuts, known, save_s = cuts + 1, saved, 0.0

"""kill -9 of each kind of process, at random moments of whole runs: the bytes of an undisturbed run
remain, no process is left, the exit code is right, and nothing that is finished runs again.

Three commands: ETO with real servers and trainings; a search and rounds with early stopping, whose
jobs are scripts of a second, so that most kills hit what drives them. `AGENTC_KILLS` says how many
each. Parts of it are tried in every run: small jobs (tests/run/test_kills.py), trainings
(tests/torch/trl/test_resume.py), episodes and servers (tests/backends/rollout, tests/runtime).
Neighbours: `test_online_kills.py`, `test_sweet_kills.py`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kills import KINDS, assert_clean, cut_off, dice, digests, kills_wanted
from smoke import Smoke, starts
from tests.support.patience import PATIENCE_S

from agentc.backend_api.trackers import installed_searcher
from agentc.runtime.store.layout import StoreLayout
from agentc.searching.study import needed_by_searcher

pytestmark = [pytest.mark.slow, pytest.mark.long]

SPECS = Path(__file__).resolve().parents[2] / "specs" / "search"
AGENTC = str(Path(sys.executable).with_name("agentc"))
ENDINGS = (0, 3, 137, -9)
"""Whole, a job or Snakemake that was killed, agentc itself."""


@dataclass(frozen=True, slots=True)
class Command:
    """What is killed so many times; `calm` is what an undisturbed run leaves, `pause` how many
    seconds one goes on at most before the next kill."""

    words: tuple[str, ...]
    calm: dict[str, Any]
    pause: float
    kills: int
    victims: tuple[str, ...] = KINDS


def left(words: tuple[str, ...], store: Path) -> dict[str, Any]:
    """A run to its end: digests of what it leaves and, of a search, its trials."""
    json_of = ("--json",) if words[0] == "search" else ()
    argv = [AGENTC, *words, "--store", str(store), *json_of]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=3 * PATIENCE_S)
    assert done.returncode == 0, done.stdout + done.stderr
    trials = json.loads(done.stdout)["trials"] if json_of else None
    return {"digests": digests(store), "trials": trials}


def small(words: tuple[str, ...], folder: Path, victims: tuple[str, ...]) -> Command:
    """A command whose undisturbed run is made first."""
    began = time.monotonic()
    calm = left(words, folder / "calm")
    return Command(words, calm, time.monotonic() - began, kills_wanted(14), victims)


@pytest.fixture
def command(request: pytest.FixtureRequest, tmp_path: Path) -> Command:
    if request.param == "eto":
        smoke: Smoke = request.getfixturevalue("smoke")
        # With servers for environments too: that is no part of a key.
        spec, text = tmp_path / "served.yaml", smoke.spec.read_text(encoding="utf-8")
        assert text.count("\ndefaults:\n") == 1
        text = text.replace("\ndefaults:\n", "\ndefaults:\n  environment_at: server\n")
        spec.write_text(text, encoding="utf-8")
        calm = {"digests": digests(smoke.store), "trials": None}
        return Command(("run", str(spec), "--plain"), calm, smoke.seconds / 8, kills_wanted(20))
    if request.param == "rounds":
        return small(("run", str(SPECS / "summit.yaml"), "--plain"), tmp_path, KINDS)
    searcher = installed_searcher("optuna")
    assert searcher is not None
    if not needed_by_searcher(searcher).ready(StoreLayout(tmp_path)):
        pytest.skip("the software stack optuna is not built: `make software-long`")
    # A program that is killed fails its trial, by its own record (docs/sweeps.md).
    victims = tuple(kind for kind in KINDS if kind != "program")
    return small(("search", str(SPECS / "climb.yaml")), tmp_path, victims)


@pytest.mark.parametrize("command", ["eto", "search", "rounds"], indirect=True)
def test_kills_change_nothing(command: Command, tmp_path: Path) -> None:
    chance, killed, endings = dice(), Counter[str](), Counter[int]()
    store, number = tmp_path / "killed-0", 0
    finished: dict[str, str] = {}
    while killed.total() < command.kills:
        with (tmp_path / "said.txt").open("w+b") as said:
            argv = [AGENTC, *command.words, "--store", str(store)]
            process = subprocess.Popen(argv, stdout=said, stderr=said)
            hit = cut_off(store, command.pause, chance, killed, process, command.victims)
        text = (tmp_path / "said.txt").read_text(encoding="utf-8")
        assert process.returncode in ENDINGS, f"after {hit}: {text}"
        assert "Traceback" not in text, f"after {hit}: {text}"
        endings[process.returncode] += 1
        assert_clean(store)
        now = starts(store)
        assert {name: now.get(name) for name in finished} == finished, f"after {hit}: run again"
        finished = now
        if process.returncode == 0:
            # Nothing is left to be killed: what it left is compared, and another store is begun.
            assert left(command.words, store) == command.calm, f"after {hit}: {text}"
            number += 1
            store, finished = tmp_path / f"killed-{number}", {}
    assert left(command.words, store) == command.calm
    assert_clean(store)
    now = starts(store)
    assert {name: now.get(name) for name in finished} == finished
    print(f"killed {dict(killed)}, ended {dict(endings)}, {number + 1} stores")


def test_a_reader_that_goes_away_ends_nothing(tmp_path: Path) -> None:
    words = ("run", str(SPECS / "summit.yaml"), "--plain")
    expected = left(words, tmp_path / "calm")
    chance = dice()
    for number in range(kills_wanted(8)):
        store = tmp_path / f"unread-{number}"
        argv = [AGENTC, *words, "--store", str(store)]
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert process.stdout is not None
        for _ in range(chance.randrange(8)):
            process.stdout.readline()
        process.stdout.close()
        assert process.wait(PATIENCE_S) == 0
        assert_clean(store)
        assert digests(store) == expected["digests"]

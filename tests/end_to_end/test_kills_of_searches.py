"""kill -9 at random moments of a search and of rounds with early stopping, and a reader that goes
away: the bytes of an undisturbed run, no process left, the right exit code.

Their jobs are scripts of a second, so that most kills hit what drives them. `AGENTC_KILLS` says how
many per test. Neighbours: `test_kill_smoke.py` (servers and trainings), `test_online_kills.py`,
`test_sweet_kills.py`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from kills import KINDS, assert_clean, cut_off, dice, digests, kills_wanted
from tests.support.patience import PATIENCE_S

from agentc.backend_api.trackers import installed_searcher
from agentc.runtime.store.layout import StoreLayout
from agentc.searching.study import needed_by_searcher

pytestmark = [pytest.mark.slow, pytest.mark.long]

SPECS = Path(__file__).resolve().parents[2] / "specs" / "search"
COMMANDS = {
    "search": ["search", str(SPECS / "climb.yaml")],
    "rounds": ["run", str(SPECS / "summit.yaml"), "--plain"],
}
VICTIMS = {"search": [kind for kind in KINDS if kind != "program"], "rounds": KINDS}
"""A program that is killed fails its trial, by its own record (docs/searching.md)."""
ENDINGS = (0, 3, 137, -9)
"""Whole, a job or Snakemake that was killed, agentc itself."""


def words(command: str, store: Path, *more: str) -> list[str]:
    agentc = str(Path(sys.executable).with_name("agentc"))
    return [agentc, *COMMANDS[command], "--store", str(store), *more]


def whole(command: str, store: Path) -> dict[str, Any]:
    """A run to its end: digests of what it left and, of a search, its trials."""
    json_of = ["--json"] if command == "search" else []
    done = subprocess.run(
        words(command, store, *json_of), capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stdout + done.stderr
    trials = json.loads(done.stdout)["trials"] if json_of else None
    return {"digests": digests(store), "trials": trials}


@pytest.mark.parametrize("command", COMMANDS)
def test_kills_change_nothing(command: str, tmp_path: Path) -> None:
    searcher = installed_searcher("optuna")
    assert searcher is not None
    if command == "search" and not needed_by_searcher(searcher).ready(StoreLayout(tmp_path)):
        pytest.skip("the software environment optuna is not built: `make environments-long`")
    began = time.monotonic()
    expected = whole(command, tmp_path / "calm")
    seconds = time.monotonic() - began
    chance, killed, endings = dice(), Counter[str](), Counter[int]()
    rounds = 0
    while killed.total() < kills_wanted(14):
        store = tmp_path / f"killed-{rounds}"
        said = tmp_path / "said.txt"
        with said.open("w+b") as out:
            process = subprocess.Popen(words(command, store), stdout=out, stderr=out)
            hit = cut_off(store, seconds, chance, killed, process, VICTIMS[command])
        endings[process.returncode] += 1
        text = said.read_text(encoding="utf-8")
        assert process.returncode in ENDINGS, f"after {hit}: {text}"
        assert "Traceback" not in text, f"after {hit}: {text}"
        assert_clean(store)
        if process.returncode == 0:
            # Nothing is left to be killed: what it left is compared, and the next round begins.
            assert whole(command, store) == expected, f"after {hit}: {text}"
            rounds += 1
    assert whole(command, tmp_path / f"killed-{rounds}") == expected
    print(f"undisturbed {seconds:.0f} s; killed {dict(killed)}, ended {dict(endings)}")


def test_a_reader_that_goes_away_ends_nothing(tmp_path: Path) -> None:
    expected = whole("rounds", tmp_path / "calm")
    chance = dice()
    for number in range(kills_wanted(8)):
        store = tmp_path / f"unread-{number}"
        process = subprocess.Popen(
            words("rounds", store), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert process.stdout is not None
        for _ in range(chance.randrange(8)):
            process.stdout.readline()
        process.stdout.close()
        assert process.wait(PATIENCE_S) == 0
        assert_clean(store)
        assert digests(store) == expected["digests"]

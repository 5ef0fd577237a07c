"""kill -9 of each kind of process, at random moments of a whole ETO run with its model server.

Parts of it are tried in every run: a run of small jobs (tests/run/test_kills.py), trainings
(tests/torch/trl/test_resume.py), episodes and servers (tests/backends/rollout, tests/runtime).
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from kills import assert_clean, cut_off, dice, digests, kills_wanted
from smoke import Smoke, starts


def run(spec: Path, store: Path, watch: Callable[[subprocess.Popen[bytes]], Any]) -> Any:
    """What `watch` returns of a run, which must be over by then."""
    agentc = str(Path(sys.executable).with_name("agentc"))
    argv = [agentc, "run", str(spec), "--store", str(store), "--plain"]
    with spec.with_name("said.txt").open("w+b") as said:
        found = watch(subprocess.Popen(argv, stdout=said, stderr=said))
        said.seek(0)
        assert b"Traceback" not in said.read(), found
    return found


@pytest.mark.slow
@pytest.mark.long
def test_kills_change_nothing(smoke: Smoke, tmp_path: Path) -> None:
    kills = kills_wanted(20)
    # With servers for environments too: that is no part of a key.
    spec, whole = tmp_path / "served.yaml", smoke.seconds
    text = smoke.spec.read_text(encoding="utf-8")
    assert text.count("\ndefaults:\n") == 1
    text = text.replace("\ndefaults:\n", "\ndefaults:\n  environment_at: server\n")
    spec.write_text(text, encoding="utf-8")
    expected = digests(smoke.store)

    chance, killed = dice(), Counter[str]()
    store, round_ = tmp_path / "killed-0", 0
    finished: dict[str, str] = {}
    while killed.total() < kills:
        hit = run(spec, store, partial(cut_off, store, whole / 8, chance, killed))
        assert_clean(store)
        now = starts(store)
        assert {name: now.get(name) for name in finished} == finished, f"after {hit}: run again"
        finished = now
        if digests(store).keys() == expected.keys():
            # This run is through: all was compared but its content; go on with a new one.
            assert digests(store) == expected
            round_ += 1
            store, finished = tmp_path / f"killed-{round_}", {}
    assert run(spec, store, lambda process: process.wait(timeout=900)) == 0
    assert_clean(store)
    now = starts(store)
    assert {name: now.get(name) for name in finished} == finished
    assert digests(store) == expected
    print(f"undisturbed {whole:.0f} s, killed: {dict(killed)}, {round_ + 1} runs")

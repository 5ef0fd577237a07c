"""The soak, short, on a real server: it holds, and its judge is no rubber stamp."""

from __future__ import annotations

import pytest
from benchmarks.soak import Outcome, judge, soak


@pytest.mark.slow
def test_sessions_survive_what_is_killed_beside_them() -> None:
    outcome = soak("textcraft", seconds=20, sessions=32, seed=1)
    assert not outcome.faults, outcome.line()
    assert outcome.counts["episodes"] > 0
    assert outcome.clients_killed > 1
    assert outcome.servers_killed == 1


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"memory": (100.0, 117.0)}, "memory grew by 17.0 MiB"),
        ({"memory": (1000.0, 1049.0)}, ""),
        ({"memory": (1000.0, 1051.0)}, "memory grew"),
        ({"threads": (1, 2)}, "threads are left"),
        ({"files": (9, 11)}, ""),
        ({"files": (9, 12)}, "files are left open"),
        ({"files": (9, 14), "children": (1, 2)}, ""),
        ({"child_mib": 701.0}, "holds 701 MiB"),
        ({"wrong": 1}, "1 walks told something else"),
        ({"episodes": 0}, "no episode came to its end"),
    ],
)
def test_what_counts_as_a_fault(changes: dict[str, object], fault: str) -> None:
    outcome = Outcome("any", 1.0, 32)
    outcome.counts.update(episodes=5)
    for name, value in changes.items():
        if name in ("wrong", "episodes"):
            outcome.counts[name] = int(str(value))
        else:
            setattr(outcome, name, value)
    judge(outcome, [])
    assert len(outcome.faults) == bool(fault)
    assert fault in "".join(outcome.faults)

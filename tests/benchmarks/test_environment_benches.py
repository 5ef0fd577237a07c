"""Benches of environments: what is not there is said, and the sides are held against the first."""

from __future__ import annotations

import pytest
from benchmarks.environments import main
from benchmarks.side_by_side import Player, print_table


def test_what_is_not_ours_to_ship_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("AGENTC_WEBSHOP", "AGENTC_WEBSHOP_DATA", "AGENTC_AGENTGYM"):
        monkeypatch.delenv(name, raising=False)
    assert main(["webshop", "textcraft"]) == 0
    printed = capsys.readouterr().out
    assert "set AGENTC_WEBSHOP (" in printed
    assert "set AGENTC_AGENTGYM (" in printed


def test_an_unknown_environment_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["webshp"])
    assert "no such environment: webshp; there are textcraft" in capsys.readouterr().err


def test_the_table_has_every_side_and_plays_every_walk(capsys: pytest.CaptureFixture[str]) -> None:
    played: list[tuple[str, str]] = []

    def player(name: str) -> Player:
        return (
            lambda task: played.append((name, f"reset {task}")),
            lambda action: played.append((name, action)),
        )

    print_table({"theirs": player("theirs"), "ours": player("ours")}, [("a", ["x", "y"])], 2)
    one = [(side, what) for side in ("theirs", "ours") for what in ("reset a", "x", "y")]
    assert played == one + one
    lines = capsys.readouterr().out.splitlines()
    assert "1 episodes, 2 steps" in lines[0]
    assert [line.split(" | ")[0] for line in lines[-2:]] == ["| theirs", "| ours"]
    assert " | 1.0 | " in lines[-2]

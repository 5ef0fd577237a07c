"""Nothing that hostile code tries succeeds: in both kinds of box, as root and as nobody."""

from __future__ import annotations

from typing import Any

import pytest
from tests.sandbox.attempts import ROUNDS, Attempt, here
from tests.sandbox.conftest import Player
from tests.sandbox.forgeries import DESERVED

from agentc.runtime.sandbox.boxes import KINDS

_ATTEMPTS = {attempt.name: attempt for each in ROUNDS.values() for attempt in here(each.attempts)}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_no_attempt_succeeds_as_nobody(play: Player, kind: str) -> None:
    _assert_held(kind, play("nobody", "play", kind))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_no_attempt_of_a_forked_process_succeeds_as_nobody(play: Player, kind: str) -> None:
    """A nursery's children are held as a box of their own holds."""
    _assert_held(kind, play("nobody", "play", f"{kind}+forked"))


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_no_attempt_of_a_forked_process_succeeds_as_root(play: Player, kind: str) -> None:
    _assert_held(kind, play("root", "play", f"{kind}+forked"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_no_attempt_succeeds_as_root(play: Player, kind: str) -> None:
    _assert_held(kind, play("root", "play", kind))


@pytest.mark.slow
def test_what_the_oldest_kernels_know_of_landlock_is_enough(play: Player) -> None:
    """What their Landlock does not know of, the filter refuses."""
    _assert_held("landlock", play("nobody", "play", "landlock:1"))


def test_there_are_as_many_attempts_as_the_design_says() -> None:
    names = [attempt.name for each in ROUNDS.values() for attempt in each.attempts]
    assert len(names) == len(set(names))
    assert len(names) >= 294


def test_attempts_succeed_without_a_box(play: Player) -> None:
    """Else it would not be the box that holds them."""
    played = play("nobody", "play", "unboxed")
    wanted = {name for name, attempt in _ATTEMPTS.items() if attempt.unboxed}
    failed = {name: end for name, end in played["ended"].items() if end != "returned"}
    assert len(wanted) >= 73
    assert set(played["ended"]) == wanted
    assert failed == {}
    # And the victims notice.
    assert {"heard AF_INET SOCK_STREAM", "heard AF_INET SOCK_DGRAM"} <= set(played["harm"])
    assert any("folder holds" in each for each in played["harm"])


def _assert_held(kind: str, played: dict[str, Any]) -> None:
    if "missing" in played:
        pytest.skip(f"no {kind}: {played['missing']}")
    ended = {name: end for each in played["ended"].values() for name, end in each.items()}
    assert set(ended) == set(_ATTEMPTS)
    wrong = {name: end for name, end in ended.items() if not _held(_ATTEMPTS[name], end, kind)}
    assert wrong == {}
    assert played["harm"] == []
    assert played["children"] == [], "no process is left"
    assert played["descriptors"], "no descriptor is left open"
    assert {name: played["forged"][name] for name in DESERVED} == DESERVED
    earned = {name for name, judged in played["forged"].items() if "pass" in judged}
    assert earned == {name for name, judged in DESERVED.items() if "pass" in judged}


def _held(attempt: Attempt, end: str, kind: str) -> bool:
    if kind in attempt.leaks:
        return end.startswith("returned")  # if it is mended, the page has to say so
    return end in attempt.ends

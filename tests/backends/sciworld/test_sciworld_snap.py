"""An action is read as the legal one that it is closest to."""

from __future__ import annotations

import pytest

from agentc_backends.environments.sciworld.snap import snap

LEGAL = (
    "close door to kitchen",
    "focus on metal pot",
    "look around",
    "open cupboard",
    "open door to kitchen",
    "pick up metal pot",
    "read book (pride and prejudice)",
)


@pytest.mark.parametrize(
    ("action", "taken"),
    [
        ("open cupboard", "open cupboard"),
        (" read book (pride and prejudice) ", "read book (pride and prejudice)"),
        ("Open Cupboard.", "open cupboard"),
        ("pick up the metal pot", "pick up metal pot"),
        ("open the kitchen door", "open door to kitchen"),
        ("kitchen", "open door to kitchen"),  # the shortest of those that share one word
        ("1", "1"),
        ("dance", "dance"),
        ("", ""),
    ],
)
def test_closest(action: str, taken: str) -> None:
    assert snap(action, LEGAL) == taken


def test_nothing_is_legal() -> None:
    assert snap("open cupboard", ()) == "open cupboard"

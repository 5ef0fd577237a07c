"""What a reply takes beyond the work that it reports."""

from __future__ import annotations

from running import Start
from tests.support.waits import ACKNOWLEDGEMENT_S, least_wait


def test_replies_wait_for_no_acknowledgement(start: Start) -> None:
    assert least_wait(start("bell").url, "/sessions", {}) < ACKNOWLEDGEMENT_S * 3 / 4

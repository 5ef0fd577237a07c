"""The pipes to a browser, without one."""

from __future__ import annotations

import os

from agentc.runtime.browser.devtools import Devtools


def test_pipes_are_closed_once() -> None:
    """A browser may be ended twice; what was opened meanwhile under the same numbers stays."""
    theirs, orders = os.pipe()
    answers, said = os.pipe()
    devtools = Devtools(orders, answers, lambda: None)
    devtools.close()
    os.dup2(theirs, orders)
    os.dup2(said, answers)
    devtools.close()
    for each in (theirs, orders, answers, said):
        os.close(each)

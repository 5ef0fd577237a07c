"""What each test costs in processor time, its processes included: a plugin of pytest's that
tests/conftest.py loads when AGENTC_TEST_COSTS names a folder. Seconds on a clock tell a suite's
waiting, this its work: `sort -rn` of the folder's files says where to look first."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Generator
from pathlib import Path

import pytest


class Costs:
    """Writes a line for each test: seconds of a processor and of a clock, its start, its name.

    What fixtures of a module or a session cost stands with the first test that asks for them.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / f"{time.time():.0f}-{os.getpid()}.tsv"

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        began, computed = time.time(), _processor()
        result = yield
        seconds = f"{_processor() - computed:.2f}\t{time.time() - began:.2f}\t{began:.1f}"
        with self._file.open("a", encoding="utf-8") as file:
            file.write(f"{seconds}\t{item.nodeid}\n")
        return result


def _processor() -> float:
    """Seconds of a processor of this process, and of those of its children that have ended."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime

"""The fixture `serve`; its server is in `answering.py`, which the tests import too."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from answering import Answer, Scripted, Serve, serving


@pytest.fixture
def serve() -> Iterator[Serve]:
    """`serve(answers)`: one answer for each request in turn (the last one repeats), or a
    function of (number, path, body)."""
    with ExitStack() as stack:

        def start(answers: list[Answer] | Callable[[int, str, Any], Answer]) -> Scripted:
            if callable(answers):
                return stack.enter_context(serving(answers))
            fixed = list(answers)
            return stack.enter_context(
                serving(lambda number, path, body: fixed[min(number, len(fixed) - 1)])
            )

        yield start

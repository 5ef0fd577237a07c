"""How builders of software environments get on: a line for each, redrawn in place on a terminal,
else a timestamped line now and then."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from agentc.runtime.machine.terminal import printable, unguarded
from agentc.software.needed import Needed

if TYPE_CHECKING:
    from rich.live import Live

_EVERY_S = 10.0


class Progress:
    """Shows lines of several builders. Use as a context manager; `report` may be called from any
    thread."""

    def __init__(self, needed: Sequence[Needed], stream: TextIO) -> None:
        self._stream = stream
        self._guard = threading.Lock()
        self._lines = {one.name: "waiting" for one in needed}
        self._told: dict[str, float] = {}
        self._live: Live | None = None

    def __enter__(self) -> Progress:
        if self._stream.isatty() and self._lines:
            from rich.console import Console
            from rich.live import Live

            console = Console(file=unguarded(self._stream))
            self._live = Live(console=console, refresh_per_second=4)
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.stop()

    def report(self, one: Needed, line: str) -> None:
        """The latest of what a builder said."""
        line = printable(line)
        with self._guard:
            self._lines[one.name] = line
            if self._live is not None:
                self._redraw(self._live)
                return
            now = time.monotonic()
            last = self._told.get(one.name)
            final = line.startswith("environment ready")
            if last is None or final or now - last >= _EVERY_S:
                self._told[one.name] = now
                self._stream.write(f"{time.strftime('%H:%M:%S')} {one.name}: {line}\n")
                self._stream.flush()

    def _redraw(self, live: Live) -> None:
        from rich.table import Table
        from rich.text import Text

        grid = Table.grid(padding=(0, 2))
        grid.add_column(no_wrap=True)
        grid.add_column(no_wrap=True, overflow="ellipsis")
        for name, line in self._lines.items():
            grid.add_row(Text(name, style="bold"), Text(line))
        live.update(grid)

"""LiveView: the run on a terminal, redrawn in place with rich: stages by round, their states,
amounts, speeds, losses and the time left."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from agentc.run import wording
from agentc.run.observe import JobSnapshot
from agentc.text import duration

_STYLES = {
    "waiting": "dim",
    "environment": "cyan",
    "leases": "cyan",
    "running": "bold cyan",
    "checking": "cyan",
    "done": "green",
    "failed": "bold red",
    "killed": "bold red",
}
_MARKS = {"waiting": "·", "done": "✓", "failed": "✗", "killed": "✗"}
_FOOTER_LINES = 4
_BAR = 12
_NOTE_S = 10.0
_WIDE = 100
"""Below so many columns there are no bars."""


class LiveView:
    """Draws to a terminal. Use as a context manager, like the plain view."""

    def __init__(self, title: str, console: Console | None = None) -> None:
        self._console = console or Console()
        self._title = title
        self._began = time.monotonic()
        self._note, self._noted = "", 0.0
        self._jobs: Sequence[JobSnapshot] = ()
        self._live = Live(console=self._console, auto_refresh=False, transient=True)

    def __enter__(self) -> LiveView:
        self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()
        # What stays on the screen: every job once, in its last state.
        self._console.print(self.table(self._jobs))

    def show(self, jobs: Sequence[JobSnapshot]) -> None:
        """Redraw."""
        self._jobs = jobs
        fitting = self._fit(jobs)
        done = sum(seen.state == "done" for seen in jobs)
        line = f"{self._title}   {done}/{len(jobs)} jobs"
        line += f"   {duration(time.monotonic() - self._began)}"
        parts: list[RenderableType] = [Text(line, style="bold"), self.table(fitting)]
        if len(fitting) < len(jobs):
            parts.append(Text(f"and {len(jobs) - len(fitting)} more jobs", style="dim"))
        if self._note and time.monotonic() - self._noted < _NOTE_S:
            parts.append(Text(self._note, style="dim", overflow="ellipsis", no_wrap=True))
        self._live.update(Group(*parts), refresh=True)

    def say(self, text: str, *, passing: bool = False) -> None:
        """A note under the table, until the next one."""
        self._note, self._noted = text, time.monotonic()
        self.show(self._jobs)

    def table(self, jobs: Iterable[JobSnapshot]) -> Table:
        """The jobs as rows; parts of a dotted name that repeat are left out, so that the stages
        of one round stand under each other."""
        rows: list[tuple[Text, RenderableType, Text]] = []
        shown: tuple[str, ...] = ()
        for seen in jobs:
            group, _, name = seen.id.rpartition(".")
            parts = tuple(group.split(".")) if group else ()
            if parts != shown:
                if parts:
                    rows.append((Text("  " + ".".join(parts), style="dim"), "", Text()))
                shown = parts
            rows.append(_row(seen, "    " if parts else "  ", name or seen.id))
        names = max((name.cell_len for name, _, _ in rows), default=0)
        grid = Table.grid(padding=(0, 2))
        grid.add_column(no_wrap=True, min_width=min(names, self._console.width // 2))
        wide = self._console.width >= _WIDE
        if wide:
            grid.add_column(width=_BAR, no_wrap=True)
        # The only column that may shrink; its texts are cut off, not wrapped.
        grid.add_column()
        for name_text, bar, words in rows:
            grid.add_row(name_text, *([bar] if wide else []), words)
        return grid

    def _fit(self, jobs: Sequence[JobSnapshot]) -> Sequence[JobSnapshot]:
        """As many jobs as the terminal has lines, the active ones and the failures first."""
        room = max(4, self._console.size.height - _FOOTER_LINES)
        heads = len({seen.id.rpartition(".")[0] for seen in jobs})
        if len(jobs) + heads <= room:
            return jobs
        room = max(2, room - heads)
        order = {"failed": 0, "killed": 0, "waiting": 2, "done": 3}
        ranked = sorted(range(len(jobs)), key=lambda i: (order.get(jobs[i].state, 1), i))
        return [jobs[index] for index in sorted(ranked[:room])]


def _row(seen: JobSnapshot, indent: str, name: str) -> tuple[Text, RenderableType, Text]:
    style = _STYLES[seen.state]
    mark = _MARKS.get(seen.state, "▸")
    measured = seen.state == "running" and seen.done is not None
    bar: RenderableType = ""
    if measured and seen.total:
        bar = ProgressBar(total=seen.total, completed=seen.done or 0.0, width=_BAR)
    if measured:
        # What matters most comes first: the end of the line may be cut off.
        parts = [wording.amount(seen), wording.speed(seen), wording.remaining(seen)]
        words = ", ".join(part for part in [*parts, wording.numbers(seen)] if part)
    else:
        words = wording.sentence(seen)
        if seen.active and seen.seconds is not None:
            words += f" ({duration(seen.seconds)})"
    cut = Text(words, style=style, no_wrap=True, overflow="ellipsis")
    return Text(f"{indent}{mark} {name}", style=style), bar, cut

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
from agentc.run.observe import Seen

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


class LiveView:
    """Draws to a terminal. Use as a context manager, like the plain view."""

    def __init__(self, title: str, console: Console | None = None) -> None:
        self._console = console or Console()
        self._title = title
        self._began = time.monotonic()
        self._note = ""
        self._jobs: Sequence[Seen] = ()
        self._live = Live(console=self._console, auto_refresh=False, transient=True)

    def __enter__(self) -> LiveView:
        self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()
        # What stays on the screen: every job once, in its last state.
        self._console.print(self.table(self._jobs))

    def show(self, jobs: Sequence[Seen]) -> None:
        """Redraw."""
        self._jobs = jobs
        fitting = self._fit(jobs)
        done = sum(seen.state == "done" for seen in jobs)
        line = f"{self._title}   {done}/{len(jobs)} jobs"
        line += f"   {wording.duration(time.monotonic() - self._began)}"
        parts: list[RenderableType] = [Text(line, style="bold"), self.table(fitting)]
        if len(fitting) < len(jobs):
            parts.append(Text(f"and {len(jobs) - len(fitting)} more jobs", style="dim"))
        if self._note:
            parts.append(Text(self._note, style="dim", overflow="ellipsis", no_wrap=True))
        self._live.update(Group(*parts), refresh=True)

    def say(self, text: str) -> None:
        """A note under the table, until the next one."""
        self._note = text
        self.show(self._jobs)

    def table(self, jobs: Iterable[Seen]) -> Table:
        """The jobs as rows; parts of a dotted name that repeat are left out, so that the stages
        of one round stand under each other."""
        grid = Table.grid(padding=(0, 2))
        for _ in range(5):
            grid.add_column(no_wrap=True)
        shown: tuple[str, ...] = ()
        for seen in jobs:
            group, _, name = seen.id.rpartition(".")
            parts = tuple(group.split(".")) if group else ()
            if parts != shown:
                if parts:
                    grid.add_row(Text("  " + ".".join(parts), style="dim"))
                shown = parts
            grid.add_row(*self._row(seen, "    " if parts else "  ", name or seen.id))
        return grid

    def _row(self, seen: Seen, indent: str, name: str) -> list[RenderableType]:
        style = _STYLES[seen.state]
        mark = _MARKS.get(seen.state, "▸")
        words = wording.STATE_WORDS[seen.state]
        if seen.state in ("done", "failed", "killed") and seen.seconds is not None:
            words = f"{words} in {wording.duration(seen.seconds)}"
        elif seen.state == "environment" and seen.message:
            words = seen.message[:60]
        bar: RenderableType = ""
        if seen.done is not None and seen.total:
            bar = ProgressBar(total=seen.total, completed=seen.done, width=20)
        measures = [wording.amount(seen), wording.speed(seen), wording.numbers(seen)]
        return [
            Text(f"{indent}{mark} {name}", style=style),
            Text(words, style=style),
            bar,
            Text("  ".join(part for part in measures if part)),
            Text(wording.remaining(seen), style="dim"),
        ]

    def _fit(self, jobs: Sequence[Seen]) -> Sequence[Seen]:
        """As many jobs as the terminal has lines, the active ones and the failures first."""
        room = max(4, self._console.size.height - _FOOTER_LINES)
        heads = len({seen.id.rpartition(".")[0] for seen in jobs})
        if len(jobs) + heads <= room:
            return jobs
        room = max(2, room - heads)
        order = {"failed": 0, "killed": 0, "waiting": 2, "done": 3}
        ranked = sorted(range(len(jobs)), key=lambda i: (order.get(jobs[i].state, 1), i))
        return [jobs[index] for index in sorted(ranked[:room])]

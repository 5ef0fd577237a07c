"""LiveView: the run on a terminal, redrawn in place with rich: what runs, with amounts, speeds,
losses and the time left; cells of a sweep folded; what waits in one line."""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, TypeAlias

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from agentc.cost.estimate import Estimate
from agentc.cost.summary import wall_left
from agentc.plan.stage_names import of_all_cells
from agentc.run import text_view
from agentc.run.observe import JobSnapshot
from agentc.run.text_view import FoldedJobs, fold_jobs, stage_path
from agentc.runtime.machine.output_filters import unguarded
from agentc.text import counted, duration, format_duration, some

_EVERY_S = 2.0
_OVERDUE = 0.25
"""Of its time so far, a job that takes longer than expected is taken to need so much more."""


class TimeLeft:
    """Call it with the jobs as they are; None where nothing was estimated. It looks again every
    two seconds, for there may be ten thousand jobs."""

    def __init__(
        self,
        document: Mapping[str, Any],
        estimates: Mapping[str, Estimate],
        cores: int,
        *,
        queued: bool = False,
        slowdown: float = 1.0,
    ) -> None:
        running = {name: each for name, each in estimates.items() if each.state == "run"}
        self._expected = {
            name: each.seconds.median * (1.0 if each.gpus else slowdown)
            for name, each in running.items()
        }
        self._wall = wall_left(document, running, cores, queued=queued) if running else None
        self._last: float | None = None
        self._when = 0.0

    def __call__(self, jobs: Sequence[JobSnapshot]) -> float | None:
        if self._wall is None:
            return None
        now = time.monotonic()
        if self._last is None or now - self._when >= _EVERY_S:
            self._last, self._when = self._wall(self.seconds(jobs)), now
        return self._last

    def seconds(self, jobs: Sequence[JobSnapshot]) -> dict[str, float]:
        """What each job still takes."""
        took: dict[str, list[float]] = {}
        for seen in jobs:
            if seen.state == "done" and seen.seconds is not None:
                took.setdefault(_alike(seen.id), []).append(seen.seconds)
        found = {}
        for seen in jobs:
            known = took.get(_alike(seen.id))
            expected = fmean(known) if known else self._expected.get(seen.id, 0.0)
            found[seen.id] = 0.0 if seen.state == "done" else _left(seen, expected)
        return found


class CoresInUse:
    """Call it with the jobs as they are: `2 of 2 cores`. Members of a session share its cores."""

    def __init__(self, document: Mapping[str, Any], cores: int) -> None:
        self._cores = cores
        self._asked = {str(job["id"]): int(job["resources"]["cpus"]) for job in document["jobs"]}
        sessions = document.get("sessions") or ()
        self._unit = {name: each["id"] for each in sessions for name in each["members"]}

    def __call__(self, jobs: Sequence[JobSnapshot]) -> str:
        units: dict[str, int] = {}
        for seen in jobs:
            if seen.active:
                unit, asked = self._unit.get(seen.id, seen.id), self._asked.get(seen.id, 1)
                units[unit] = max(units.get(unit, 0), asked)
        return f"{min(sum(units.values()), self._cores)} of {counted(self._cores, 'core')}"


def _left(seen: JobSnapshot, expected: float) -> float:
    if not seen.active:
        return expected
    if seen.remaining is not None:
        return seen.remaining
    age = seen.seconds or 0.0
    return expected - age if age < expected else _OVERDUE * age


def _alike(name: str) -> str:
    """Jobs of one stage in other rounds and cells have this in common."""
    return re.sub(r"\.\d+\.", ".*.", of_all_cells(name))


_STYLES = {
    "waiting": "dim",
    "queued": "dim",
    "software": "cyan",
    "leases": "cyan",
    "running": "bold cyan",
    "checking": "cyan",
    "done": "green",
    "failed": "bold red",
    "killed": "bold red",
}
_MARKS = {"waiting": "·", "queued": "·", "done": "✓", "failed": "✗", "killed": "✗"}
_FOOTER_LINES = 6
_BAR = 12
_NOTE_S = 10.0
_WIDE = 100
"""In fewer columns there are no bars."""
_FEW_WAITING = 3
"""This number of waiting lines is shown, more are one."""


class LiveView:
    """Draws to a terminal. Use as a context manager, like the plain view. `left` gives the seconds
    that the whole still takes, `cores` says how many cores are in use, `log` where the log of a job
    is, by its id."""

    def __init__(
        self,
        title: str,
        console: Console | None = None,
        left: Callable[[Sequence[JobSnapshot]], float | None] = lambda jobs: None,
        cores: Callable[[Sequence[JobSnapshot]], str] | None = None,
        log: Callable[[str], Path] | None = None,
    ) -> None:
        self._left = left
        self._cores = cores
        self._log = log
        self._console = console or Console(file=unguarded(sys.stdout))
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
        # What stays on the screen: every job in its last state, those of a sweep together.
        self._console.print(self.table(fold_jobs(self._jobs)))

    def show(self, jobs: Sequence[JobSnapshot]) -> None:
        """Redraw."""
        self._jobs = jobs
        started, waiting = split_waiting(fold_jobs(jobs))
        fitting = self._fit(started)
        parts: list[RenderableType] = [
            Text(self._head(jobs), style="bold", overflow="ellipsis", no_wrap=True),
            self.table(fitting),
        ]
        lines = [_more(started, fitting), _waiting_line(waiting), self._log_line(jobs)]
        parts += [
            Text(line, style="dim", overflow="ellipsis", no_wrap=True) for line in lines if line
        ]
        if self._note and time.monotonic() - self._noted < _NOTE_S:
            parts.append(Text(self._note, style="dim", overflow="ellipsis", no_wrap=True))
        self._live.update(Group(*parts), refresh=True)

    def _log_line(self, jobs: Sequence[JobSnapshot]) -> str:
        """Where the log of the first job that runs is, and the command that prints that of any."""
        running = next((seen.id for seen in jobs if seen.state == "running"), None)
        if self._log is None or running is None:
            return ""
        return f"  `agentc logs {running} -f`: {self._log(running)}"

    def _head(self, jobs: Sequence[JobSnapshot]) -> str:
        """`quickstart   3/23 jobs, 2 running   2 of 2 cores   1 min 20 s   about 3.5 min left`."""
        done, active = (sum(map(test, jobs)) for test in (_is_done, _is_active))
        parts = [
            self._title,
            f"{done}/{len(jobs)} jobs" + (f", {active} running" if active else ""),
        ]
        parts += [self._cores(jobs)] if self._cores is not None and done < len(jobs) else []
        parts.append(duration(time.monotonic() - self._began))
        left = self._left(jobs) if done < len(jobs) else None
        parts += [] if left is None else [f"about {format_duration(left)} left"]
        wide = "   ".join(parts)
        return wide if len(wide) <= self._console.width else "  ".join(parts)

    def print_line(self, text: str, *, passing: bool = False) -> None:
        """A note under the table, until the next one."""
        self._note, self._noted = text, time.monotonic()
        self.show(self._jobs)

    def table(self, jobs: Iterable[Row]) -> Table:
        """The jobs as rows; parts of a dotted name that repeat are left out, so that the stages
        of one round stand under each other."""
        rows: list[tuple[Text, RenderableType, Text]] = []
        shown: tuple[str, ...] = ()
        for seen in jobs:
            group, name = stage_path(seen.id)
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

    def _fit(self, jobs: Sequence[Row]) -> Sequence[Row]:
        """As many as the terminal has lines, the active ones and the failures first."""
        room = max(4, self._console.size.height - _FOOTER_LINES)
        heads = len({stage_path(seen.id)[0] for seen in jobs})
        if len(jobs) + heads <= room:
            return jobs
        room = max(2, room - heads)
        order = {"failed": 0, "killed": 0, "queued": 2, "waiting": 2, "done": 3}
        ranked = sorted(range(len(jobs)), key=lambda i: (order.get(jobs[i].state, 1), i))
        return [jobs[index] for index in sorted(ranked[:room])]


Row: TypeAlias = JobSnapshot | FoldedJobs


def split_waiting(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """The rows that are shown, and those of which no job has started, where these are many."""
    waiting = [row for row in rows if all(map(_is_waiting, _jobs_of(row)))]
    if len(waiting) <= _FEW_WAITING:
        return list(rows), []
    idle = {row.id for row in waiting}
    return [row for row in rows if row.id not in idle], waiting


def _waiting_line(waiting: Sequence[Row]) -> str:
    """`  · 14 jobs waiting: explore@*, pairs@*, dpo@* and 5 more`."""
    if not waiting:
        return ""
    count = sum(len(_jobs_of(row)) for row in waiting)
    return f"  · {counted(count, 'job')} waiting: {some([row.id for row in waiting], 6)}"


def _more(rows: Sequence[Row], fitting: Sequence[Row]) -> str:
    """What the screen has no room for: `  and 12 more jobs: 10 done, 2 queued`."""
    shown = {row.id for row in fitting}
    states = Counter(job.state for row in rows if row.id not in shown for job in _jobs_of(row))
    if not states:
        return ""
    counts = ", ".join(f"{count} {text_view.STATE_WORDS[state]}" for state, count in states.items())
    return f"  and {counted(states.total(), 'more job')}: {counts}"


def _jobs_of(row: Row) -> Sequence[JobSnapshot]:
    return row.jobs if isinstance(row, FoldedJobs) else (row,)


def _is_waiting(seen: JobSnapshot) -> bool:
    return seen.state == "waiting" and seen.queue is None


def _is_done(seen: JobSnapshot) -> bool:
    return seen.state == "done"


def _is_active(seen: JobSnapshot) -> bool:
    return seen.active


def _row(seen: Row, indent: str, name: str) -> tuple[Text, RenderableType, Text]:
    style = _STYLES[seen.state]
    mark = _MARKS.get(seen.state, "▸")
    if isinstance(seen, FoldedJobs):
        ends = ProgressBar(
            total=len(seen.jobs), completed=sum(map(_is_done, seen.jobs)), width=_BAR
        )
        cut = Text(seen.sentence(), style=style, no_wrap=True, overflow="ellipsis")
        return Text(f"{indent}{mark} {name}", style=style), ends, cut
    measured = seen.state == "running" and seen.done is not None
    bar: RenderableType = ""
    if measured and seen.total:
        bar = ProgressBar(total=seen.total, completed=seen.done or 0.0, width=_BAR)
    if measured:
        # What matters most comes first: the end of the line may be cut off.
        parts = [text_view.amount(seen), text_view.speed(seen), text_view.remaining(seen)]
        words = ", ".join(part for part in [*parts, text_view.numbers(seen)] if part)
    else:
        words = text_view.sentence(seen)
        if seen.active and seen.seconds is not None:
            words += f" ({duration(seen.seconds)})"
    cut = Text(words, style=style, no_wrap=True, overflow="ellipsis")
    return Text(f"{indent}{mark} {name}", style=style), bar, cut

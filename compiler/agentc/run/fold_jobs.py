"""Jobs of a sweep as people read them: those of one stage in three or more cells are one line.

What failed stands by itself. `live_view.py` and `agentc status` show what this gives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agentc.plan.stage_names import FEWEST_CELLS, of_all_cells
from agentc.run.observe import JobSnapshot, State
from agentc.run.wording import STATE_WORDS, amount, remaining
from agentc.text import and_more, counted, duration

_NAMED = 2
"""Jobs at work whose amounts a line tells."""


@dataclass(frozen=True, slots=True)
class FoldedJobs:
    """Jobs of one stage in several cells; `id` is `sft@*`."""

    id: str
    jobs: tuple[JobSnapshot, ...]

    @property
    def state(self) -> State:
        """That of the whole: at work where one is, waiting where one waits, else done."""
        states = {seen.state for seen in self.jobs}
        if states == {"done"}:
            return "done"
        return "running" if any(seen.active for seen in self.jobs) else "waiting"

    def sentence(self, waiting: str = STATE_WORDS["waiting"]) -> str:
        """`3 of 9 done, 2 running (seed=3: 40/100 steps, about 29 s left), 4 waiting`."""
        states = Counter(seen.state for seen in self.jobs)
        took = sum(seen.seconds or 0.0 for seen in self.jobs if seen.state == "done")
        if self.state == "done":
            return f"{counted(len(self.jobs), 'job')} done in {duration(took)} together"
        parts = [f"{states.pop('done', 0)} of {len(self.jobs)} done"]
        later = states.pop("waiting", 0)
        for state, count in states.items():
            parts.append(f"{count} {STATE_WORDS[state]}{self._measured(state)}")
        return ", ".join([*parts, *([f"{later} {waiting}"] if later else [])])

    def _measured(self, state: State) -> str:
        """How far the jobs of a state are, by their cells."""
        said = []
        for seen in self.jobs:
            words = ", ".join(part for part in (amount(seen), remaining(seen)) if part)
            if seen.state == state and words:
                cell = seen.id.partition("@")[2].rpartition(":")[0] or seen.id.partition("@")[2]
                said.append(f"{cell}: {words}")
        return f" ({and_more(said[:_NAMED], len(said) - _NAMED)})" if said else ""


def fold_jobs(jobs: Iterable[JobSnapshot]) -> list[JobSnapshot | FoldedJobs]:
    """Each job, or the fold that it is in, at the place of the fold's first."""
    cells: dict[str, list[JobSnapshot]] = {}
    order: list[JobSnapshot] = list(jobs)
    for seen in order:
        if seen.state not in ("failed", "killed"):
            cells.setdefault(of_all_cells(seen.id), []).append(seen)
    found: list[JobSnapshot | FoldedJobs] = []
    placed: set[str] = set()
    for seen in order:
        name = of_all_cells(seen.id)
        alike: Sequence[JobSnapshot] = cells.get(name, ())
        if name == seen.id or len(alike) < FEWEST_CELLS or seen.state in ("failed", "killed"):
            found.append(seen)
        elif name not in placed:
            placed.add(name)
            found.append(FoldedJobs(name, tuple(alike)))
    return found


def stage_path(name: str) -> tuple[str, str]:
    """What is before the last dot of a stage's path, and the rest: a cell may have dots of its
    own."""
    path, at, cell = name.partition("@")
    group, _, last = path.rpartition(".")
    return group, last + at + cell

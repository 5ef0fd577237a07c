"""What a tracker is to the follower: a sink of points, with a run of its own for each curve.

`follow.py` calls it, from one thread; each tracker's program implements it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

HeldSteps = dict[str, set[int]]
"""The steps that a tracker has of each metric."""


@dataclass(frozen=True)
class TrackedRun:
    """A run in a tracker: the curve of one job, or the results of an experiment.

    `id` is 16 hex digits: the same for the same object under the same label, in whichever process.
    `name` is for people, and tells runs of one project apart; `group` is the label of the run of
    the experiment. `config` is JSON.
    """

    id: str
    name: str
    project: str
    group: str
    kind: str
    tags: tuple[str, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict, compare=False)


class TrackerSink(Protocol):
    """Where points go. A sink may raise whatever its library raises: its process ends, and nothing
    else does."""

    def open(self, run: TrackedRun) -> HeldSteps:
        """Begin a run, or go on with one of this id; returns what the tracker has of it. Called
        once before all other calls for that run."""

    def log(self, run: TrackedRun, step: int, numbers: Mapping[str, float]) -> None:
        """Points at one step; values may be NaN or infinite. No point comes twice."""

    def tell(self, run: TrackedRun, title: str, text: str, words: Mapping[str, str]) -> None:
        """A text in Markdown, and the same in single words by name (of verdicts on claims). It
        replaces an earlier one of that title, where the tracker can replace."""

    def finish(self, run: TrackedRun) -> None:
        """The run is complete."""

    def flush(self) -> None:
        """Whatever was logged can be seen now."""

    def close(self) -> None:
        """End of the process; runs that were not finished stay unfinished."""

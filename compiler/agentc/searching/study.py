"""A study: the trials of a search, kept in the store; whose it is, and one searcher at a time.

Neighbours: `process.py` keeps and proposes, `follow.py` goes from trial to trial.
"""

from __future__ import annotations

import fcntl
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from agentc.exit_codes import EXIT_FAILED, CommandError
from agentc.ir.search import Search
from agentc.kinds.field import Json
from agentc.plan.keys import canonical_text
from agentc.runtime.store.layout import StoreLayout
from agentc.searching.objective import Measured
from agentc.searching.process import SearcherProcess

TrialState: TypeAlias = Literal["complete", "pruned", "failed", "running"]
_DIGITS = 8


class StudyBusyError(CommandError):
    """Another search is at work on it."""

    exit_code = EXIT_FAILED


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchTrial:
    """`value` of one that was pruned is that after its last round; `steps` are values by round."""

    number: int
    params: Mapping[str, Json]
    state: TrialState
    value: float | None
    steps: Mapping[str, float]
    why: str

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> SearchTrial:
        """As the searcher's program tells it."""
        return cls(**value)


@dataclass(frozen=True, slots=True)
class StudyFolder:
    """`searches/<label>-<digest>` of the store. The digest is of all that makes values comparable:
    what measures them apart from the searched params, the axes, and how values are drawn. How
    many trials there are is not in it, so that a study can be made longer."""

    path: Path

    @classmethod
    def of(
        cls, layout: StoreLayout, label: str, search: Search, measures: Sequence[Measured]
    ) -> StudyFolder:
        """`measures` are those of the plan with the first value of each axis."""
        about = {name: value for name, value in asdict(search).items() if name != "trials"}
        about["objects"] = [list(measured.objects) for measured in measures]
        digest = hashlib.sha256(canonical_text(about).encode("utf-8")).hexdigest()
        return cls(layout.root / "searches" / f"{label}-{digest[:_DIGITS]}")

    @property
    def file(self) -> Path:
        """The study, as the searcher's library keeps it."""
        return self.path / "study.db"

    @property
    def log(self) -> Path:
        """What the library printed."""
        return self.path / "searcher.log"

    @contextmanager
    def held(self) -> Iterator[None]:
        """For this process alone. Raises StudyBusyError, OSError."""
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / ".lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StudyBusyError(
                    f"another `agentc search` is at work on this study ({self.path})"
                ) from None
            yield


class Study:
    """Trials, through the searcher's program."""

    def __init__(self, searcher: SearcherProcess) -> None:
        self._searcher = searcher
        self.trials = _read(searcher.trials)

    def ask(self) -> tuple[int, Mapping[str, Json]]:
        """The trial that was cut off, else a new one: its number and params."""
        answer = self._searcher.ask("ask")
        return int(answer["number"]), answer["params"]

    def report(self, number: int, after: int, value: float) -> bool:
        """Whether a trial of this value after a round is to end there."""
        return bool(self._searcher.ask("report", number, after, value)["prune"])

    def tell(self, number: int, state: TrialState, value: float | None, why: str = "") -> None:
        """How a trial ended."""
        self.trials = _read(self._searcher.ask("tell", number, state, value, why)["trials"])

    @property
    def finished(self) -> int:
        """How many trials are over."""
        return sum(trial.state != "running" for trial in self.trials)

    def best(self, search: Search) -> SearchTrial | None:
        """The best of the complete ones, the earliest of equals."""
        complete = [trial for trial in self.trials if trial.state == "complete"]
        sign = 1.0 if search.direction == "maximize" else -1.0
        return max(complete, key=lambda trial: sign * (trial.value or 0.0), default=None)


def opening_request(folder: StudyFolder, search: Search) -> dict[str, Any]:
    """The first request to a searcher's program."""
    about = asdict(search)
    axes = {axis.pop("name"): axis for axis in about.pop("axes")}
    return {**about, "axes": axes, "file": str(folder.file), "name": folder.path.name}


def _read(trials: Sequence[Mapping[str, Any]]) -> tuple[SearchTrial, ...]:
    return tuple(SearchTrial.of(trial) for trial in trials)

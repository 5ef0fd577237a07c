"""A study: the trials of a search, kept in the store, for one searcher at a time; and the program
that proposes values, in its own software stack.

The program receives a line of JSON and answers with one. The first opens the study: `file`,
`name`, `direction`, `sampler`, `pruner`, `startup_trials`, `seed`, and `axes`, each with
`choices`, `low`, `high`, `log`, `step`, `integer`; its answer holds the `trials` there are. Then
come `{"do": ..., "with": [...]}`: `ask` [], `report` [number, round, value], `tell` [number,
state, value or null, why].
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from agentc.backend_api.trackers import Searcher
from agentc.exit_codes import EXIT_FAILED, CommandError
from agentc.ir.search import Search
from agentc.kinds.field import Json
from agentc.plan.keys import canonical_text
from agentc.runtime.software import job_software
from agentc.runtime.store.layout import StoreLayout
from agentc.searching.objective import Measured
from agentc.software.requirements import Needed

_CPUS = 1
_END_S = 10.0


class SearcherFailedError(CommandError):
    """The program ended; its text says where its last words are."""

    exit_code = EXIT_FAILED


class SearcherProcess:
    """Started at once, with the opening request; `log` takes what its library prints. Raises
    SoftwareError where it cannot be started, SearcherFailedError where it ends."""

    def __init__(
        self,
        searcher: Searcher,
        layout: StoreLayout,
        opening: Mapping[str, Any],
        log: Path,
    ) -> None:
        needed = needed_by_searcher(searcher)
        directory, record = job_software.ensure_software(layout, needed.sha256, needed.lock)
        code = job_software.code_directory(layout, [searcher.program])
        command = job_software.python_command(directory, record, layout.root, code)
        programs = job_software.programs_of(directory, record)
        self._log = log
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [*command, "-m", searcher.program],
                env=job_software.job_variables(code, _CPUS, False, {}, programs),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                # Ctrl-C reaches it as the end of its input, after what it was asked.
                start_new_session=True,
            )
        self.trials: list[Mapping[str, Any]] = self._query(opening)["trials"]

    def ask(self, what: str, *words: Any) -> dict[str, Any]:
        """One request and its answer."""
        return self._query({"do": what, "with": words})

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _query(self, request: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):  # its end is told below
            self._process.stdin.write(json.dumps(request).encode("utf-8") + b"\n")
            self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            status = self._process.wait()
            raise SearcherFailedError(
                f"the program that proposes values ended with {status}; its log: {self._log}"
            )
        answer = json.loads(line)
        assert isinstance(answer, dict)
        return answer


def needed_by_searcher(searcher: Searcher) -> Needed:
    """Its software stack, which no job shares."""
    software = searcher.software
    return Needed(name=software.name, lock=software.text, users=("search",))


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
                    f"another `agentc search` is running on this study ({self.path})"
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

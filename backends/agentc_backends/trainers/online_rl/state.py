"""What a run resumes from: its state and its rows in the job's work folder, or an earlier run.

A state is weights and moments as safetensors, nothing pickled, and `state.json` with the next
phase. It becomes the newest when it is marked complete (`common/checkpoints.py`). All else follows
from the run's seed and the episodes. Since all draws depend on the number of the iteration, 150
iterations and 150 that continue them publish the bytes of 300.
"""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.optim import Optimizer

from agentc.program.artifact_files import CURVE_FILE, EPISODES_FILE, EVALUATIONS_FILE, RUN_FILE
from agentc.program.job import Job, iterate_rows, write_rows
from agentc_backends.agents.common.failures import FatalError
from agentc_backends.agents.common.journal import Journal
from agentc_backends.trainers.common.checkpoints import mark_complete, newest_complete, step_of
from agentc_backends.trainers.online_rl.learning import Learner

STATE = "state"
"""The folder of an artifact that holds the learner."""
_STATES = "state-"
_STATE = "state.json"


@dataclass(frozen=True, slots=True)
class RunPlace:
    """The next phase, by iteration (from 0) and number. `row` is what the iteration's row of the
    curve holds so far."""

    iteration: int = 0
    phase: int = 0
    row: Mapping[str, Any] = field(default_factory=dict)


def save_state(folder: Path, learner: Learner, place: RunPlace) -> None:
    """Write the state, then delete the one before it."""
    newest = newest_complete(folder, f"{_STATES}*")
    target = folder / f"{_STATES}{1 + (0 if newest is None else step_of(newest))}"
    write_learner(target, learner)
    (target / _STATE).write_text(json.dumps(asdict(place), sort_keys=True), encoding="utf-8")
    mark_complete(target)
    if newest is not None:
        shutil.rmtree(newest)


def write_learner(target: Path, learner: Learner) -> None:
    """Write all weights and moments into a new folder."""
    target.mkdir(parents=True)
    for name, module in learner.modules.items():
        save_file(_weights(module), target / f"{name}.safetensors")
    for name, optimiser in learner.optimisers.items():
        save_file(_moments(optimiser), target / f"{name}.optimiser.safetensors")


def read_learner(folder: Path, learner: Learner) -> None:
    """Load them into a learner of the same shape. Raises FatalError for one of another shape."""
    try:
        for name, module in learner.modules.items():
            load_weights(module, load_file(folder / f"{name}.safetensors"))
        for name, optimiser in learner.optimisers.items():
            _load_moments(optimiser, load_file(folder / f"{name}.optimiser.safetensors"))
    except (OSError, KeyError, RuntimeError) as error:
        raise FatalError(f"the state is not one of such a learner: {error}") from error


def load_state(folder: Path, learner: Learner) -> RunPlace | None:
    """Load the newest state into the learner and return the next phase; None without a state."""
    newest = newest_complete(folder, f"{_STATES}*")
    if newest is None:
        return None
    read_learner(newest, learner)
    return RunPlace(**json.loads((newest / _STATE).read_text(encoding="utf-8")))


def _weights(module: nn.Module) -> dict[str, Tensor]:
    # Tied parameters have one name here.
    return {name: each.detach().contiguous() for name, each in module.named_parameters()}


def load_weights(module: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Raises KeyError for a missing one, RuntimeError for one of another shape."""
    with torch.no_grad():
        for name, each in module.named_parameters():
            each.copy_(weights[name])


def _moments(optimiser: Optimizer) -> dict[str, Tensor]:
    """Adam's state of each parameter, by the parameter's number."""
    state = optimiser.state_dict()["state"]
    return {
        f"{number}.{name}": value.detach().contiguous()
        for number, entry in state.items()
        for name, value in entry.items()
    } or {"nothing": torch.zeros(1)}  # before the first step: a file needs a tensor


def _load_moments(optimiser: Optimizer, moments: Mapping[str, Tensor]) -> None:
    complete = optimiser.state_dict()
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in moments.items():
        number, _, name = key.partition(".")
        if name:
            state.setdefault(int(number), {})[name] = value
    complete["state"] = state
    optimiser.load_state_dict(complete)


@dataclass(frozen=True, slots=True)
class RunStart:
    """Where a run starts: at the first iteration, or after an earlier run, whose iterations have
    the `played` rows of episodes and whose curve ends with the row `last`. For offline RL, `played`
    are the recorded episodes."""

    iteration: int = 0
    played: Iterable[Sequence[Mapping[str, Any]]] = ()
    last: Mapping[str, Any] = field(default_factory=dict)


class RunFiles:
    """The rows of episodes and evaluations and the curve, in the work folder. `open` drops rows
    after the place that the run resumes from, since another machine may repeat them differently;
    rows of the next phase itself are kept, for they are of the policy that plays it."""

    def __init__(self, folder: Path, episodes: int) -> None:
        self._folder, self._number = folder, episodes
        self._journals: dict[str, Journal] = {}
        self.first = 0
        """The first iteration of this run, after those of an earlier one."""
        self.last: Mapping[str, Any] = {}
        """The newest row of the curve or of the earlier run's; {} before the first."""

    def open(self, place: RunPlace, first: int, before: Mapping[str, Any]) -> None:
        """To be called once. `first` is the run's first iteration, `before` the last row of the
        earlier run's curve."""
        self.first = first
        iteration = place.iteration
        for name in (EPISODES_FILE, EVALUATIONS_FILE):
            _filter_rows(self._folder / name, lambda row: row["iteration"] <= iteration)
        # The curve's row of an iteration is written at the iteration's end.
        _filter_rows(self._folder / CURVE_FILE, lambda row: row["iteration"] < iteration)
        self._journals = {
            EPISODES_FILE: Journal(
                self._folder / EPISODES_FILE, ("iteration", "attempt")
            ).__enter__(),
            EVALUATIONS_FILE: Journal(
                self._folder / EVALUATIONS_FILE, ("iteration", "task_id", "attempt")
            ).__enter__(),
        }
        curve = self.curve()
        self.last = curve[-1] if curve else before

    def close(self) -> None:
        """Close the files."""
        for journal in self._journals.values():
            journal.__exit__(None, None, None)

    @property
    def played(self) -> Journal:
        """Episodes of training, one row each."""
        return self._journals[EPISODES_FILE]

    @property
    def evaluated(self) -> Journal:
        """Episodes of evaluations."""
        return self._journals[EVALUATIONS_FILE]

    def episodes_of(self, iteration: int) -> Sequence[Mapping[str, Any]]:
        """The rows of an iteration, in their order."""
        first = iteration * self._number
        return self.played.rows([(iteration, first + number) for number in range(self._number)])

    def curve(self) -> list[dict[str, Any]]:
        """The rows so far."""
        path = self._folder / CURVE_FILE
        return list(iterate_rows(path)) if path.exists() else []

    def add_to_curve(self, row: Mapping[str, Any]) -> None:
        """Append the row of a finished iteration."""
        self.last = row
        with (self._folder / CURVE_FILE).open("a", encoding="utf-8") as out:
            out.write(json.dumps(row, sort_keys=True) + "\n")


def _filter_rows(path: Path, wanted: Callable[[Mapping[str, Any]], bool]) -> None:
    """Drop other rows, and a line that was not written to its end."""
    if not path.exists():
        return
    filtered = path.with_suffix(".tmp")
    write_rows(filtered, (row for row in _complete_rows(path) if wanted(row)))
    filtered.replace(path)


def _complete_rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.endswith("\n"):
                yield json.loads(line)


def run_start(job: Job, learner: Learner) -> RunStart:
    """Where the job's run starts; the state of an earlier run is loaded into the learner. Raises
    FatalError for a run without its state, or with that of another learner."""
    folders = job.inputs("start")
    if not folders:
        return RunStart()
    [folder] = folders
    if not (folder / STATE).is_dir():
        raise FatalError(
            "the run to continue from did not publish its state; run it with `publish_state: true`"
        )
    read_learner(folder / STATE, learner)
    run = json.loads((folder / RUN_FILE).read_text(encoding="utf-8"))
    *_, last = iterate_rows(folder / CURVE_FILE)
    return RunStart(run["iterations"], _by_iteration(folder), last)


def _by_iteration(folder: Path) -> Iterator[Sequence[Mapping[str, Any]]]:
    rows = iterate_rows(folder / EPISODES_FILE)
    for _, group in itertools.groupby(rows, key=lambda row: row["iteration"]):
        yield [*group]

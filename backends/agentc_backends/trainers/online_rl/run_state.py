"""The state of a run in the job's work folder, so that it goes on where it was cut off.

Weights and moments as safetensors, nothing pickled; `state.json` names the next phase. A state is
written beside the one before it and becomes the newest by its mark (`common/checkpoints.py`).
Everything else follows from the run's seed and from the episodes' file.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.optim import Optimizer

from agentc_backends.agents.common.failures import FatalError
from agentc_backends.trainers.common.checkpoints import mark_whole, newest_whole, step_of
from agentc_backends.trainers.online_rl.learner import Learner

STATE = "state"
"""The folder of an artifact that has a learner whole."""
_STATES = "state-"
_STATE = "state.json"


@dataclass(frozen=True, slots=True)
class RunPlace:
    """What comes next: a phase of an iteration (from 0). `row` is what the iteration's row of the
    curve has so far."""

    iteration: int = 0
    phase: int = 0
    row: Mapping[str, Any] = field(default_factory=dict)


def save_state(folder: Path, learner: Learner, place: RunPlace) -> None:
    """Write the state; the one before it goes when this one is whole."""
    newest = newest_whole(folder, f"{_STATES}*")
    target = folder / f"{_STATES}{1 + (0 if newest is None else step_of(newest))}"
    write_learner(target, learner)
    (target / _STATE).write_text(json.dumps(asdict(place), sort_keys=True), encoding="utf-8")
    mark_whole(target)
    if newest is not None:
        shutil.rmtree(newest)


def write_learner(target: Path, learner: Learner) -> None:
    """All weights and moments into a new folder."""
    target.mkdir(parents=True)
    for name, module in learner.modules.items():
        save_file(_weights(module), target / f"{name}.safetensors")
    for name, optimiser in learner.optimisers.items():
        save_file(_moments(optimiser), target / f"{name}.optimiser.safetensors")


def read_learner(folder: Path, learner: Learner) -> None:
    """Put them into a learner of the same shape. Raises FatalError for another one."""
    try:
        for name, module in learner.modules.items():
            put_weights(module, load_file(folder / f"{name}.safetensors"))
        for name, optimiser in learner.optimisers.items():
            _put_moments(optimiser, load_file(folder / f"{name}.optimiser.safetensors"))
    except (OSError, KeyError, RuntimeError) as error:
        raise FatalError(f"the state is not one of such a learner: {error}") from error


def load_state(folder: Path, learner: Learner) -> RunPlace | None:
    """Put the newest state into the learner and say what comes next; None where there is none."""
    newest = newest_whole(folder, f"{_STATES}*")
    if newest is None:
        return None
    read_learner(newest, learner)
    return RunPlace(**json.loads((newest / _STATE).read_text(encoding="utf-8")))


def _weights(module: nn.Module) -> dict[str, Tensor]:
    # Parameters that are tied have one name here, and all of them follow it.
    return {name: each.detach().contiguous() for name, each in module.named_parameters()}


def put_weights(module: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Raises KeyError for one that is missing, RuntimeError for one of another shape."""
    with torch.no_grad():
        for name, each in module.named_parameters():
            each.copy_(weights[name])


def _moments(optimiser: Optimizer) -> dict[str, Tensor]:
    """What Adam keeps of each parameter, by the parameter's number."""
    kept = optimiser.state_dict()["state"]
    return {
        f"{number}.{name}": value.detach().contiguous()
        for number, entry in kept.items()
        for name, value in entry.items()
    } or {"nothing": torch.zeros(1)}  # before the first step; a file has to hold something


def _put_moments(optimiser: Optimizer, moments: Mapping[str, Tensor]) -> None:
    whole = optimiser.state_dict()
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in moments.items():
        number, _, name = key.partition(".")
        if name:
            state.setdefault(int(number), {})[name] = value
    whole["state"] = state
    optimiser.load_state_dict(whole)

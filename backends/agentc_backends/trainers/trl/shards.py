"""Resumable checkpoints of a sharded training: each process writes its share. A rerun may have
another placement: it reads these whatever its own processes divide, and whole ones when they divide
something. Neighbours: trainers.py (when), sharding.py (the model).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agentc_backends.data.models.checkpoint import load_model
from agentc_backends.trainers.common.processes import first_process

_OPTIMIZER = "optimizer.pt"
"""As transformers names it."""
_SHARDS = "shards"
"""The folder of a checkpoint that holds weights and optimiser state."""


def has_shards(checkpoint: Path) -> bool:
    """Whether a sharded training saved this checkpoint."""
    return (checkpoint / _SHARDS).is_dir()


def save_shards(checkpoint: Path, model: Any, optimizer: Any) -> None:
    """Write what is trained, and the optimiser's state of it. Every process must call it."""
    import torch.distributed.checkpoint as dcp

    dcp.save(_state(model, optimizer), checkpoint_id=str(checkpoint / _SHARDS))


def load_shards(checkpoint: Path, model: Any, optimizer: Any) -> None:
    """Read them into a model and its optimiser, divided or whole."""
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import (
        set_model_state_dict,
        set_optimizer_state_dict,
    )

    state = _state(model, optimizer)
    dcp.load(state, checkpoint_id=str(checkpoint / _SHARDS))
    set_model_state_dict(model, state["model"], options=_options(strict=False))
    set_optimizer_state_dict(model, optimizer, state["optimizer"], options=_options())


def load_whole(checkpoint: Path, model: Any, optimizer: Any) -> None:
    """Read what a training without sharding saved into a sharded model and its optimiser."""
    import torch
    from torch.distributed.checkpoint.state_dict import (
        StateDictOptions,
        set_model_state_dict,
        set_optimizer_state_dict,
    )

    options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    weights: dict[str, Any] = {}
    state: dict[str, Any] = {}
    if first_process():
        weights = load_model(checkpoint).state_dict()
        saved = torch.load(checkpoint / _OPTIMIZER, map_location="cpu", weights_only=True)
        state = _by_name(saved, model, optimizer)
    set_model_state_dict(model, weights, options=options)
    set_optimizer_state_dict(model, optimizer, state, options=options)


def _by_name(saved: dict[str, Any], model: Any, optimizer: Any) -> dict[str, Any]:
    """An optimiser's state by the names of parameters, where it was saved by their places."""
    name_of = {id(parameter): name for name, parameter in model.named_parameters()}
    names = [
        [name_of[id(parameter)] for parameter in group["params"]]
        for group in optimizer.param_groups
    ]
    in_order = [name for group in names for name in group]
    return {
        "state": {in_order[place]: value for place, value in saved["state"].items()},
        "param_groups": [
            {**group, "params": own}
            for group, own in zip(saved["param_groups"], names, strict=True)
        ],
    }


def _state(model: Any, optimizer: Any) -> dict[str, Any]:
    from torch.distributed.checkpoint.state_dict import (
        get_model_state_dict,
        get_optimizer_state_dict,
    )

    return {
        "model": get_model_state_dict(model, options=_options()),
        "optimizer": get_optimizer_state_dict(model, optimizer, options=_options()),
    }


def _options(strict: bool = True) -> Any:
    """Frozen weights are those of the model that training started from."""
    from torch.distributed.checkpoint.state_dict import StateDictOptions

    return StateDictOptions(
        ignore_frozen_params=True, flatten_optimizer_state_dict=True, strict=strict
    )

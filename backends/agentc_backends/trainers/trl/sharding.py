"""A model whose weights, gradients and optimiser state are sharded over the training processes by
PyTorch's FSDP2, and resumable checkpoints of it.

Each layer of the network is a unit that is gathered when it computes; embeddings, last norm and
head are one more. docs/design/sharding.md says why no library does this. In a checkpoint each
process writes its share. A rerun may have another placement: it reads shards into any model, and
the checkpoint of a training without sharding into a sharded one.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentc.program.job import Job
from agentc_backends.data.models.checkpoint import load_model
from agentc_backends.job_device import visible_device
from agentc_backends.trainers.common.checks import attention_implementation, require_attention
from agentc_backends.trainers.common.processes import first_process, process_count

NONE, OPTIMIZER, FULL = "none", "optimizer", "full"
"""What is sharded; see the field `sharding`."""
_OPTIMIZER = "optimizer.pt"
"""transformers' name for the file."""
_SHARDS = "shards"
"""The folder of a checkpoint with shards of the weights and the optimiser's state."""


@dataclass(frozen=True, slots=True)
class ModelLayout:
    """How a model is placed in the memory of the processes."""

    sharding: str = NONE
    offload: bool = False
    attention: str = "sdpa"
    bfloat16: bool = False

    @property
    def sharded(self) -> bool:
        return self.sharding != NONE


WHOLE = ModelLayout()
"""The layout without sharding: every process holds the whole model."""


def read_layout(job: Job) -> ModelLayout:
    """The layout of a job's placement."""
    placement = job.placement
    return ModelLayout(
        sharding=placement.get("sharding", NONE),
        offload=placement.get("offload", False),
        attention=attention_implementation(placement.get("attention", "auto")),
        bfloat16=job.config["arguments"]["bf16"],
    )


def join_group() -> None:
    """Create the process group of a single process; the launcher has created that of several."""
    import torch.distributed as dist

    if not dist.is_initialized():
        backend = "cuda:nccl,cpu:gloo" if visible_device().type == "cuda" else "gloo"
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)


def load_with_layout(directory: Path, layout: ModelLayout) -> Any:
    """The model of a checkpoint, in float32. If it is sharded, the first process reads the weights
    and each process keeps its share."""
    require_attention(layout.attention)
    if not layout.sharded:
        return load_model(directory, layout.attention)
    from torch.distributed.checkpoint.state_dict import StateDictOptions, set_model_state_dict

    join_group()
    whole = load_model(directory, layout.attention).state_dict() if first_process() else {}
    model = empty_model(directory, layout.attention)
    _shard(model, layout)
    _materialise(model, layout)
    set_model_state_dict(
        model, whole, options=StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    )
    return model


def empty_model(directory: Path, attention: str) -> Any:
    """The model of a checkpoint with empty weights, which take no memory, and with its buffers."""
    import torch
    from accelerate import init_empty_weights
    from transformers import AutoConfig, AutoModelForCausalLM, GenerationConfig

    config = AutoConfig.from_pretrained(str(directory), trust_remote_code=False)
    with init_empty_weights(include_buffers=False):
        model = AutoModelForCausalLM.from_config(
            config, dtype=torch.float32, attn_implementation=attention, trust_remote_code=False
        )
    model.tie_weights()
    if (directory / "generation_config.json").exists():
        model.generation_config = GenerationConfig.from_pretrained(str(directory))
    model.eval()
    return model


def release_gathered(model: Any) -> None:
    """Free what a forward pass gathered: without a backward pass nothing else does."""
    from torch.distributed.fsdp import FSDPModule

    for module in model.modules():
        if isinstance(module, FSDPModule):
            module.reshard()


def whole_weights(model: Any, dtype: str) -> dict[str, Any]:
    """All weights of a sharded model in `dtype`, on the CPU of the first process; nothing on the
    others. Every process must call it."""
    import torch
    from torch.distributed.tensor import DTensor

    weights: dict[str, Any] = {}
    for name, value in model.state_dict().items():
        whole = value.full_tensor() if isinstance(value, DTensor) else value
        if first_process():
            weights[name] = whole.detach().to(getattr(torch, dtype)).cpu()
        del whole
    return weights


def sharding_facts(model: Any, layout: ModelLayout) -> dict[str, Any]:
    """How the model is sharded, and the share that the first process holds."""
    from torch.distributed.tensor import DTensor

    if not layout.sharded:
        return {}
    parameters = list(model.parameters())
    sharded = [parameter for parameter in parameters if isinstance(parameter, DTensor)]
    held = sum(parameter.to_local().numel() for parameter in sharded)
    return {
        "sharding": {
            "kept": layout.sharding,
            "offload": layout.offload,
            "placements": sorted({str(parameter.placements) for parameter in sharded}),
            "processes": process_count(),
            "share": held / sum(parameter.numel() for parameter in sharded),
        }
    }


def _shard(model: Any, layout: ModelLayout) -> None:
    import torch
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import (
        CPUOffloadPolicy,
        MixedPrecisionPolicy,
        OffloadPolicy,
        fully_shard,
    )

    device = visible_device()
    common: dict[str, Any] = {
        "mesh": init_device_mesh(device.type, (process_count(),)),
        "offload_policy": CPUOffloadPolicy(pin_memory=device.type == "cuda")
        if layout.offload
        else OffloadPolicy(),
    }
    # Gathered in the type that autocast would compute in; sums over processes stay float32.
    policy = MixedPrecisionPolicy()
    if layout.bfloat16:
        policy = MixedPrecisionPolicy(
            param_dtype=torch.bfloat16, reduce_dtype=torch.float32, cast_forward_inputs=False
        )
    full = layout.sharding == FULL
    for layer in _layers(model):
        fully_shard(layer, reshard_after_forward=full, mp_policy=policy, **common)
    fully_shard(model, mp_policy=MixedPrecisionPolicy(cast_forward_inputs=False), **common)


def _layers(model: Any) -> list[Any]:
    names = set(model._no_split_modules or ())
    return [module for module in model.modules() if type(module).__name__ in names]


def _materialise(model: Any, layout: ModelLayout) -> None:
    """Allocate the memory of each share; buffers keep their values."""
    device = visible_device()
    buffers = dict(model.named_buffers())
    model.to_empty(device="cpu" if layout.offload else device)
    for name, value in buffers.items():
        owner, _, last = name.rpartition(".")
        module = model.get_submodule(owner)
        module.register_buffer(
            last, value.to(device), persistent=last not in module._non_persistent_buffers_set
        )
    model.tie_weights()


def has_shards(checkpoint: Path) -> bool:
    """Whether a sharded training saved this checkpoint."""
    return (checkpoint / _SHARDS).is_dir()


def save_shards(checkpoint: Path, model: Any, optimizer: Any) -> None:
    """Write the trained weights and the optimiser's state. Every process must call it."""
    import torch.distributed.checkpoint as dcp

    dcp.save(_state(model, optimizer), checkpoint_id=str(checkpoint / _SHARDS))


def load_shards(checkpoint: Path, model: Any, optimizer: Any) -> None:
    """Read them into a model and its optimiser, sharded or not."""
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
    """Read the checkpoint of a training without sharding into a sharded model and its optimiser."""
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
    """An optimiser's state by the names of parameters, from one by their places."""
    name_of = {parameter: name for name, parameter in model.named_parameters()}
    names = [[name_of[each] for each in group["params"]] for group in optimizer.param_groups]
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
    """Frozen weights are not saved: they are those of the model that training starts from."""
    from torch.distributed.checkpoint.state_dict import StateDictOptions

    return StateDictOptions(
        ignore_frozen_params=True, flatten_optimizer_state_dict=True, strict=strict
    )

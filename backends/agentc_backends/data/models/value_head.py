"""The head that turns a model's last hidden states of a row into one score: made, written, read.

Next to a critic's checkpoint as value_head.safetensors: `weight` (1, width) and `bias` (1),
float32."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agentc.program.artifact_files import VALUE_HEAD_FILE

HEAD = "value_head"
"""The name by which a model that is trained has its head."""
_STD = 0.02
"""Of its first weights, as that of linear layers of the models themselves."""


def new_head(width: int, seed: int) -> Any:
    """A linear layer from `width` numbers to one, without a bias at first; the same for a seed."""
    import torch

    head = torch.nn.Linear(width, 1, dtype=torch.float32)
    torch.nn.init.normal_(head.weight, std=_STD, generator=torch.Generator().manual_seed(seed))
    torch.nn.init.zeros_(head.bias)
    return head


def write_head(directory: Path, head: Any) -> None:
    """Write value_head.safetensors."""
    from safetensors.torch import save_file

    tensors = {name: each.detach().float().cpu() for name, each in head.state_dict().items()}
    save_file(tensors, str(directory / VALUE_HEAD_FILE), metadata={"format": "pt"})


def read_head(directory: Path) -> Any:
    """The head of a critic."""
    import torch
    from safetensors.torch import load_file

    tensors = load_file(str(directory / VALUE_HEAD_FILE))
    head = torch.nn.Linear(tensors["weight"].shape[1], 1, dtype=torch.float32)
    head.load_state_dict(tensors)
    return head


def pool_states(hidden: Any, mask: Any, pooling: str) -> Any:
    """Of last hidden states (rows, length, width) and a mask (rows, length) that is 1 up to the end
    of each row, in float32: the `mean` over a row's tokens, or its `last` token; (rows, width)."""
    import torch

    states = hidden.float()
    if pooling == "last":
        ends = mask.sum(dim=1) - 1
        return states[torch.arange(states.size(0), device=states.device), ends]
    weights = mask.unsqueeze(-1).float()
    return (states * weights).sum(dim=1) / weights.sum(dim=1)

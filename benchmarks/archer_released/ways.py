"""What the released trainer does besides what it means to: clipping all networks together, and
counting positions over padding. Put around our own steps, so that both can be held to each other
under the released settings; no run of ours does either. Used by `parity.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.optim import Adam


def jointly_clipped(own: nn.Module, all_of: Sequence[nn.Module], clip: float, parts: int) -> Adam:
    """Adam of one network that clips the gradients of all of them to one norm before it steps, with
    those that the other networks' last step has left, which it shrinks as well. Gradients of
    `parts` micro-batches are added up rather than averaged."""
    optimiser = Adam(own.parameters(), lr=1e-3)

    def before(*_: object) -> None:
        for each in own.parameters():
            if each.grad is not None:
                each.grad.mul_(parts)
        every = [each for network in all_of for each in network.parameters()]
        nn.utils.clip_grad_norm_(every, clip)

    optimiser.register_step_pre_hook(before)
    return optimiser


def padded(prompts: Sequence[Sequence[int]], filler: int) -> list[tuple[int, ...]]:
    """Prompts of one length, filled up behind: a reply follows the filling, as released."""
    longest = max(map(len, prompts))
    return [(*prompt, *[filler] * (longest - len(prompt))) for prompt in prompts]


@contextmanager
def unseen(body: nn.Module, filler: int) -> Iterator[None]:
    """Within it no token of a text sees the filling; positions are counted over it all the same."""

    def hide(_: nn.Module, positional: Any, named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        mask, filling = named["attention_mask"], named["input_ids"] == filler
        if mask.dim() == 4:  # texts that replies share, where it is added to scores
            mask = mask.masked_fill(filling[:, None, None], torch.finfo(mask.dtype).min)
        else:
            mask = mask * ~filling
        return positional, {**named, "attention_mask": mask}

    handle = body.register_forward_pre_hook(hide, with_kwargs=True)
    try:
        yield
    finally:
        handle.remove()

"""The processes of one training, as `torch.distributed.run` tells them: which one writes files, how
many there are, and what they agree on. Neighbour: `launch.py` starts them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

Decision = TypeVar("Decision")


def first_process() -> bool:
    """Whether this process writes files."""
    return os.environ.get("RANK", "0") == "0"


def process_count() -> int:
    """How many processes train."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def agreed(decide: Callable[[], Decision]) -> Decision:
    """What the first process decides, on all of them; no other calls `decide`."""
    if process_count() == 1:
        return decide()
    import torch.distributed

    words = [decide() if first_process() else None]
    torch.distributed.broadcast_object_list(words, src=0)
    # No other process reads its own word.
    return words[0]  # type: ignore[return-value]


def wait_for_all() -> None:
    """Return once every process has come here."""
    if process_count() > 1:
        import torch.distributed

        torch.distributed.barrier()

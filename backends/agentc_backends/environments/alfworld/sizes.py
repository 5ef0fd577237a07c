"""What a declaration says of games without opening one: parts, files, sizes, what is invented."""

from __future__ import annotations

from collections.abc import Mapping

SUFFIXES = (".jsonl.xz", ".jsonl")
"""Of a part's file."""

ROOMS = ("bathroom", "bedroom", "kitchen", "livingroom")
TASKS = ("put", "two", "clean", "heat", "cool", "look")
"""What `invented.py` invents."""

INVENTED = "invented"
"""The value of `games` that stands for games of our own."""

RELEASED: Mapping[str, int] = {
    "train": 3553,
    "valid_train": 200,
    "valid_seen": 140,
    "valid_unseen": 134,
}
PARTS = tuple(RELEASED)


def invented_size(part: str, train: int) -> int:
    """As many for testing as ALFWorld has, unless that is more than for training."""
    return train if part == "train" else min(train, RELEASED[part])

"""Seeds of episodes, trees and requests, derived by sha256 from what they belong to, never from the
order in which anything happens; so results do not depend on concurrency or on an interruption."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence


def episode_seed(stage_seed: int, task_id: str, attempt: int) -> int:
    """31 bits, for every (stage seed, task, attempt) its own."""
    return _derive(f"episode/1/{stage_seed}/{attempt}/{task_id}")


def prefix_seed(stage_seed: int, number: int, source: str, turns: int, attempt: int) -> int:
    """The same for an episode that begins with the first `turns` turns of a `source`, which is of
    input `number`."""
    return _derive(f"prefix/1/{stage_seed}/{number}/{turns}/{attempt}/{source}")


def draw_length(stage_seed: int, number: int, source: str, lengths: Sequence[int]) -> int:
    """One of the lengths that a prefix of a source can have, each as likely as the others."""
    return lengths[_derive(f"cut/1/{stage_seed}/{number}/{source}") % len(lengths)]


def turn_seed(seed: int, turn: int) -> int:
    """The sampling seed of the request for one reply of an episode."""
    return _derive(f"turn/1/{seed}/{turn}")


def draw_seed(seed: int, number: int) -> int:
    """The same for one of several candidates for a reply; `number` counts from 0. The first has the
    turn's own seed, so that what is drawn for few of them is part of what is drawn for more."""
    return _derive(f"draw/1/{seed}/{number}") if number else seed


def tree_seed(stage_seed: int, task_id: str) -> int:
    """31 bits, for every (stage seed, task) its own: seeds of a search tree derive from it."""
    return _derive(f"tree/1/{stage_seed}/{task_id}")


def prefix_tree_seed(stage_seed: int, number: int, source: str, turns: int) -> int:
    """The same for a tree that begins behind the first `turns` turns of a `source`, which is of
    input `number`."""
    return _derive(f"prefix_tree/1/{stage_seed}/{number}/{turns}/{source}")


def child_seed(seed: int, node: int, number: int) -> int:
    """The sampling seed of the request for a child of a tree's node; `number` counts from 0."""
    return _derive(f"child/1/{seed}/{node}/{number}")


def _derive(text: str) -> int:
    # 31 bits: some servers keep seeds in a signed 32-bit integer.
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1

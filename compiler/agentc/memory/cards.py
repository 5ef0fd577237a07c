"""GPUs by name, and what fits into them."""

from __future__ import annotations

import re

GB = 1e9

CARDS: dict[str, float] = {
    "a10-24gb": 24,
    "a30-24gb": 24,
    "a40-48gb": 46,
    "a100-40gb": 40,
    "a100-80gb": 80,
    "a800-80gb": 80,
    "a6000-48gb": 48,
    "b200-180gb": 180,
    "gh200-96gb": 96,
    "h100-80gb": 80,
    "h100-94gb": 94,
    "h200-141gb": 141,
    "h20-96gb": 96,
    "h800-80gb": 80,
    "l4-24gb": 23,
    "l40s-48gb": 46,
    "rtx3090-24gb": 24,
    "rtx4090-24gb": 24,
    "rtx5090-32gb": 32,
    "t4-16gb": 15,
    "v100-16gb": 16,
    "v100-32gb": 32,
}
"""Gigabytes of 1e9 bytes that a training or a server may fill. Data sheets count in 2^30: what they
have more (5 of 80) is for the driver's context, the communication of processes, and what the
allocator cannot use. Less than in the name where error correction takes a part."""


def card_named(name: str) -> str | None:
    """The entry of CARDS that a name means: itself, or the only one of that type (`h200`)."""
    plain = name.strip().lower().replace("_", "-")
    if plain in CARDS:
        return plain
    found = [each for each in CARDS if each.split("-")[0] == plain]
    return found[0] if len(found) == 1 else None


def card_bytes(value: object) -> float | None:
    """Bytes of a card's name, or of a number of GB, also as a text (`80`, `80gb`); None for a name
    that nobody knows."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value * GB if value > 0 else None
    text = str(value)
    match = re.fullmatch(r"(\d+(?:\.\d+)?) *(?:gb)?", text.strip().lower())
    if match is not None:
        return float(match[1]) * GB if float(match[1]) > 0 else None
    known = card_named(text)
    return None if known is None else CARDS[known] * GB


def card_label(value: object) -> str:
    """For people: `a100-80gb`, or `a GPU of 80 GB`."""
    known = card_named(str(value))
    if known is not None:
        return known
    held = card_bytes(value)
    return str(value) if held is None else f"a GPU of {held / GB:g} GB"


def largest_card(name: str) -> str | None:
    """The card that a name means; of a type with several (`a100`), the largest."""
    known = card_named(name)
    kind = name.strip().lower()
    same = [each for each in CARDS if each.split("-")[0] == kind]
    return known or max(same, key=CARDS.__getitem__, default=None)


def card_type(value: object) -> str | None:
    """The type of GPU, as the cost model calls it: `a100` of `a100-80gb`."""
    known = card_named(str(value))
    return None if known is None else known.split("-")[0]

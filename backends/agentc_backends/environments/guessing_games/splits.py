"""Train, validation and test by secret, stratified by category or continent.

Upstream has no splits: it evaluates on what it trains on (`together` is that).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from agentc_backends.environments.guessing_games.secrets import Secret

HELD_OUT = ("train", "validation", "test")


def split_secrets(secrets: Iterable[Secret], splits: str) -> Mapping[str, tuple[str, ...]]:
    """About 70/10/20 of each group, in the order of a hash of names; or all in one."""
    everything = tuple(secrets)
    if splits == "together":
        return {"all": tuple(secret.id for secret in everything)}
    parts: dict[str, list[str]] = {name: [] for name in HELD_OUT}
    for group in sorted({secret.group for secret in everything}):
        ids = sorted((s.id for s in everything if s.group == group), key=_rank)
        first, second = (len(ids) * 70 + 50) // 100, (len(ids) * 80 + 50) // 100
        parts["train"] += ids[:first]
        parts["validation"] += ids[first:second]
        parts["test"] += ids[second:]
    return {name: tuple(sorted(ids)) for name, ids in parts.items()}


def _rank(secret: str) -> bytes:
    return hashlib.sha256(f"split/1/{secret}".encode()).digest()

"""Chooses a replica by key, so that a conversation meets the server that has its prefix cached.

Rendezvous hashing (Thaler and Ravishankar, 1998): with a replica more or less, only its share of
the keys moves. Neighbour: `transport.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b


def ranked(urls: Sequence[str], key: str) -> list[str]:
    """The replicas in the order in which a key prefers them."""
    return sorted(urls, key=lambda url: blake2b(f"{url}\0{key}".encode()).digest(), reverse=True)

"""What the plan says of servers that spread over nodes: how, and the command of each rank.

Addresses and ports are known when the job runs; until then they stand as words in braces.
Neighbours: `tree.py` (text), `agentc.runtime.servers.server_ranks` (what starts the ranks).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any


def spread(ranks: Mapping[str, Any]) -> str:
    """`2 nodes (tensor_parallel 4 x pipeline_parallel 2)`."""
    sizes = " x ".join(f"{name} {size}" for name, size in ranks["sizes"].items())
    return f"{ranks['nodes']} nodes ({sizes})"


def rank_commands(lease: Mapping[str, Any]) -> list[str]:
    """The command line of each rank, the first one's first; none for a server of one node."""
    ranks = lease.get("ranks")
    if not ranks:
        return []
    program = ["python", *lease["program"]]
    return [_command([*program, *_added(ranks, rank)]) for rank in range(ranks["nodes"])]


def rank_lines(lease: Mapping[str, Any]) -> Iterator[str]:
    """The same for people, who need not read the program once for each rank."""
    ranks = lease["ranks"]
    for rank in range(ranks["nodes"]):
        program = "the program" if rank else _command(["python", *lease["program"]])
        where = "another node" if rank else "the first node, listens"
        yield f"rank {rank} ({where}): {program} {_command(_added(ranks, rank))}"


def _added(ranks: Mapping[str, Any], rank: int) -> list[str]:
    known = {"{nodes}": str(ranks["nodes"]), "{rank}": str(rank)}
    return [known.get(word, word) for word in [*ranks["each"], *(ranks["others"] if rank else [])]]


def _command(words: list[str]) -> str:
    """As people would type it: placeholders stay bare."""
    return " ".join(word if word.startswith("{") else shlex.quote(word) for word in words)

"""Searchers: programs that propose values of params, as distributions declare them.

The entry-point group is `agentc.searchers`; `agentc.searching` starts their programs. Neighbour:
`trackers.py`, the other programs beside a run.
"""

from __future__ import annotations

from dataclasses import dataclass

from agentc.backend_api.announced import announced
from agentc.backend_api.declare import SoftwareEnvironment

GROUP = "agentc.searchers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Searcher:
    """`program` is a module that runs in `software` and answers requests on its standard input, a
    line of JSON each (`agentc.searching.process` has them)."""

    id: str
    doc: str
    software: SoftwareEnvironment
    program: str


def installed_searcher(name: str) -> Searcher | None:
    """The one of that id; None where no distribution has it."""
    for entry in announced(GROUP):
        if entry.name == name:
            found = entry.load()
            if isinstance(found, Searcher):
                return found
    return None

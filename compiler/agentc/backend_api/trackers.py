"""Trackers and searchers: the programs that follow a run, as distributions declare them.

Their entry-point groups are `agentc.trackers` and `agentc.searchers`; each is loaded where a spec
or a command names it. `agentc.tracking` and `agentc.searching` start their programs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from agentc.backend_api.declare import Software
from agentc.backend_api.table import announced
from agentc.kinds.field import Field, Json, string

TRACKERS = "agentc.trackers"
_LOCAL = ("file", "sqlite")
"""Schemes of addresses that are paths."""

PROJECT = string(
    "project",
    "What runs are listed under; by default, the name of the experiment.",
    nullable=True,
    pattern="^[A-Za-z0-9][A-Za-z0-9._-]*$",
    longest=100,
    identity="metadata",
)
"""A setting that every tracker has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackerRefusal:
    """Why a tracker cannot work with its settings; `setting` is the one that is pointed at."""

    setting: str
    message: str
    fix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracker:
    """A sink for curves and results.

    `program` is a module that runs in `software`, with a request on its standard input
    (`agentc.runtime.tracking.program`). `declared_fields` are its settings besides `project`.
    `secrets` maps settings that refer to a secret to the variables of the program that hold the
    value; `variables` are others that it inherits. `refuse` looks at settings before anything runs.
    `folder` names the setting that is a folder to write into, `address` the one that says where
    things are sent (or a path in a URI, to write to), `service` where without it.
    """

    id: str
    doc: str
    software: Software
    program: str
    declared_fields: tuple[Field, ...] = ()
    secrets: Mapping[str, str] = field(default_factory=dict)
    variables: tuple[str, ...] = ()
    folder: str | None = None
    address: str | None = None
    service: str | None = None
    refuse: Callable[[Mapping[str, Json]], TrackerRefusal | None] | None = None

    def sent_to(self, settings: Mapping[str, Json]) -> str | None:
        """Where it sends things, as far as the settings say."""
        given = settings.get(self.address) if self.address else None
        return str(given) if given else self.service

    def written_to(self, settings: Mapping[str, Json]) -> dict[str, str]:
        """The settings that name files of this machine, with their paths."""
        found = {}
        if self.folder and settings.get(self.folder):
            found[self.folder] = str(settings[self.folder])
        address = str(settings.get(self.address) or "") if self.address else ""
        scheme, colon, rest = address.partition(":")
        if self.address and address and (not colon or scheme in _LOCAL):
            # sqlite:///relative, sqlite:////absolute, file:relative, file:///absolute
            path = rest.removeprefix("///" if scheme == "sqlite" else "//")
            found[self.address] = path if colon else address
        return found

    @property
    def fields(self) -> tuple[Field, ...]:
        """All that a spec may set."""
        return (PROJECT, *self.declared_fields)


def installed_trackers() -> dict[str, Tracker]:
    """By id, sorted. One that cannot be imported, or is none, is left out: a stranger's tracker
    stops no experiment."""
    found: dict[str, Tracker] = {}
    for entry in announced(TRACKERS):
        try:
            tracker = entry.load()
        except Exception:  # a stranger's module may raise anything at import
            continue
        if isinstance(tracker, Tracker) and tracker.id == entry.name:
            found.setdefault(entry.name, tracker)
    return found


# Searchers: programs that propose values of params, as distributions declare them.
#
# The entry-point group is `agentc.searchers`; `agentc.searching` starts their programs.

SEARCHERS = "agentc.searchers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Searcher:
    """`program` is a module that runs in `software` and answers requests on its standard input, a
    line of JSON each (`agentc.searching.study` has them)."""

    id: str
    doc: str
    software: Software
    program: str


def installed_searcher(name: str) -> Searcher | None:
    """The one of that id; None where no distribution has it."""
    for entry in announced(SEARCHERS):
        if entry.name == name:
            found = entry.load()
            if isinstance(found, Searcher):
                return found
    return None

"""References: what a compilation asks of the world outside its spec, with the answers it got.

Lowering asks for digests of local files and for commits of hub repositories; the lock is made of
what was asked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

Revision: TypeAlias = tuple[str, str]
"""A hub repository (of a data set: `datasets/owner/name`) and what the spec calls its revision: a
commit, a branch or a tag."""

_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(slots=True)
class OutsideReferences:
    """`pins` are commits known from a lock. With `moving`, a branch or a tag without a pin stays
    what it is: such a plan can be looked at, and `unpinned` has to be empty before it is run.
    `files` and `revisions` fill up while passes run."""

    pins: Mapping[Revision, str] = field(default_factory=dict)
    moving: bool = False
    files: dict[str, str] = field(default_factory=dict)
    revisions: dict[Revision, str | None] = field(default_factory=dict)

    def commit(self, repo: str, revision: str) -> str | None:
        """The commit meant: the revision itself when it is one, else what the lock pins. Where
        nothing does: None, or with `moving` the revision."""
        found = revision if is_commit(revision) else self.pins.get((repo, revision))
        self.revisions[repo, revision] = found
        return revision if found is None and self.moving else found

    @property
    def unpinned(self) -> tuple[Revision, ...]:
        """Branches and tags that no lock pins."""
        return tuple(asked for asked, commit in self.revisions.items() if commit is None)

    def copy(self) -> OutsideReferences:
        """The same answers, with nothing asked yet."""
        return OutsideReferences(pins=self.pins, moving=self.moving)


def is_commit(revision: str) -> bool:
    """Whether a revision is a whole commit id, which never moves."""
    return _COMMIT.fullmatch(revision) is not None

"""Game files that are known: what they are called, what can be gained in them, where to get them.

Standard library only: the declaration, the server and the interpreter's process all read it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

LEGAL_VERSION = 1
"""Of how legal actions are found (`machine.py`); what another version found is not used."""
DEFAULT_FILE = "detective.z5"
"""Looked for in the folder of the spec where no game is named."""


@dataclass(frozen=True, slots=True)
class Story:
    """A game file. `points` is what an episode can gain: the highest score less the first one.

    `scratch` are bytes of memory (from, to) that say nothing of the game's world: they count turns
    or are the parser's. `python -m benchmarks.detective --check` plays to see whether that holds.
    """

    name: str
    sha256: str
    points: int
    scratch: tuple[tuple[int, int], ...] = ()
    known: bool = True


DETECTIVE = Story(
    name="detective",
    sha256="f6b0b9b5f4ff8890ab481b11e63ea18350b43640c88a9b8c23d6a2b269f9a040",
    points=350,
    scratch=((6777, 6779), (6791, 6793), (6827, 6829), (6840, 6841), (6860, 13675)),
)
_KNOWN: Mapping[str, Story] = {DETECTIVE.sha256: DETECTIVE}
WHERE = (
    "Detective (release 1, serial number 000715; 108,032 bytes) is not ours to ship. `agentc data "
    "fetch detective --to FOLDER` takes it from where ArCHer's authors published it (YifeiZhou02/"
    f"ArCHer on GitHub); put it beside the spec as {DEFAULT_FILE}, or name it by "
    f"`game: <path>`. Its SHA-256 is {DETECTIVE.sha256}."
)


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def story_of(sha256: str, points: int | None) -> Story | None:
    """The known game with this digest, or one that is told by its digest and `points` alone; None
    for an unknown one without points."""
    known = _KNOWN.get(sha256)
    if known is not None or points is None:
        return known
    return Story(name=f"game-{sha256[:12]}", sha256=sha256, points=points, known=False)

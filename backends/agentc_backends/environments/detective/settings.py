"""Detective's settings, and the game files that are known.

Standard library only: the declaration and the server both read it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from agentc.program.settings import setting

LEGAL_VERSION = 1
"""Of how legal actions are found (`interpreter.py`); what another version found is not used."""
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


MAX_STEPS = 60


# fmt: off
@dataclass(frozen=True, slots=True, kw_only=True)
class DetectiveSettings:
    sha256: str | None = setting("Of the game's file; Detective's.", None, in_spec=False)
    game: str | None = setting(
        f"The game's file (.z5, ...); null: `{DEFAULT_FILE}` beside the spec. It is not ours to "
        "ship; the README says where to get it.", None, rule=False)
    points: int | None = setting(
        "What can be gained in a game other than Detective (the highest score less the first one).",
        None, minimum=1, rule=False)
    actions: Literal["legal", "free"] = setting(
        "`legal`: an action outside of the list that the observation ends with is refused; `free`: "
        "any command goes to the game, as in ArCHer's code, but those that step out of it (verbs "
        "for its author, menus, several commands in one).", "legal")
    max_steps: int = setting(
        "Actions until an episode ends. ArCHer's class says 60, its training loop 50.", MAX_STEPS,
        minimum=1)
    expert_skill: float = setting(
        "The probability that a game of the expert follows the walkthrough; any other one is of "
        "legal actions drawn evenly, some 40 points: games of both make a start for what learns "
        "from rewards.", 1.0, minimum=0, maximum=1, rule=False)
    processes: int | None = setting(
        "Interpreters at a time; null: one for each core.", None, minimum=1, identity="placement")
    step_timeout_s: float = setting(
        "Seconds of CPU time until an interpreter that does not answer is ended and its "
        "episode is void.", 5.0, minimum=1, identity="placement")
    forget: bool = setting("Find all legal actions again.", False, in_spec=False)

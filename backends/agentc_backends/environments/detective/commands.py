"""Reads an action as one command of a player, and tells commands that would cheat or break a game.

Games made with Inform in its debugging mode, as Detective is, understand verbs for their author:
`purloin`, `gonear` and `goto` gain points without playing, `showverb` and `goto` can hang the
interpreter, `help` opens a menu that swallows what follows. The game's own dictionary marks all of
these as meta (not part of the story). Standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import pairwise

MOST_LETTERS = 150
"""Of a command; interpreters cut longer ones."""
_ABBREVIATED = {
    "n": "north", "s": "south", "e": "east", "w": "west", "u": "up", "d": "down",
    "ne": "northeast", "nw": "northwest", "se": "southeast", "sw": "southwest",
}  # fmt: skip
_PLAIN = re.compile(r"[ -~]+")
_WORDS = re.compile(r'[^ .,"]+|[.,"]')
# `oops` puts a word into the command before; `undo` takes back what an episode's state does not
# hold; the others begin a second command in the same turn.
_TRICKS = frozenset({".", "then", "oops", "o", "undo"})
_AUTHORS = (
    "abstract", "actions", "changes", "daemons", "goto", "gonear", "messages", "purloin", "random",
    "recording", "replay", "routines", "scope", "showobj", "showverb", "showheap", "timers",
    "trace", "tree",
)  # fmt: skip
"""Inform's verbs for authors, denied also where a dictionary does not mark them."""


def tidy(action: str) -> str:
    """The first line, in lower case, with single spaces; a direction in full."""
    lines = action.strip().splitlines()
    text = " ".join(lines[0].lower().split()) if lines else ""
    return _ABBREVIATED.get(text, text)


def speakable(command: str) -> bool:
    """Whether it is text that a player could type."""
    return len(command) <= MOST_LETTERS and _PLAIN.fullmatch(command) is not None


def forbidden(command: str, meta: Collection[str], letters: int) -> bool:
    """Whether a tidy command steps out of the game: a meta verb, an author's verb, or several
    commands in one. The game's parser tells words apart by their first `letters`."""
    words = _WORDS.findall(command)
    short = [word[:letters] for word in words]
    if any(word in _TRICKS for word in short):
        return True
    # A name and a comma order somebody to do what follows; one may order oneself.
    verbs = short[:1] + [b for a, b in pairwise(short) if a == ","]
    authors = {verb[:letters] for verb in _AUTHORS}
    return any(verb in meta or verb in authors for verb in verbs)

"""ALFWorld's two wordings: `put X in/on Y` until its release 0.3, `move X to Y` since 0.4.

The papers of 2023 and 2024 were written with the first. Neighbours: `play.py` speaks in them.
"""

from __future__ import annotations

from dataclasses import dataclass

NOTHING_HAPPENS = "Nothing happens."
_HELP = (
    ("look", "look around your current location"),
    ("inventory", "check your current inventory"),
    ("go to (receptacle)", "move to a receptacle"),
    ("open (receptacle)", "open a receptacle"),
    ("close (receptacle)", "close a receptacle"),
    ("take (object) from (receptacle)", "take an object from a receptacle"),
    ("move (object) to (receptacle)", "place an object in or on a receptacle"),
    ("examine (something)", "examine a receptacle or an object"),
    ("use (object)", "use an object"),
    ("heat (object) with (receptacle)", "heat an object using a receptacle"),
    ("clean (object) with (receptacle)", "clean an object using a receptacle"),
    ("cool (object) with (receptacle)", "cool an object using a receptacle"),
    ("slice (object) with (object)", "slice an object using a sharp object"),
)


@dataclass(frozen=True, slots=True)
class Wording:
    """`place_action` and `placed` take a thing and a receptacle. `arrives_at_location`: an arrival
    names the location (`loc 12`), not the receptacle. `basins` are types to clean things in."""

    name: str
    place_action: str
    placed: str
    arrives_at_location: bool
    basins: frozenset[str]
    help: str | None


def _help_text() -> str:
    """The columns of the released grammar; one entry there has two spaces in place of more."""
    rows = (
        f"  {form}:  {what}" if form.startswith("move") else f"  {form + ':':<34}{what}"
        for form, what in _HELP
    )
    return "Available commands:\n" + "\n".join(rows) + "\n"


PUT = Wording(
    name="put",
    place_action="put {} in/on {}",
    placed="You put the {} in/on the {}.",
    arrives_at_location=True,
    basins=frozenset({"sinkbasintype"}),
    help=None,
)
MOVE = Wording(
    name="move",
    place_action="move {} to {}",
    placed="You move the {} to the {}.",
    arrives_at_location=False,
    basins=frozenset({"sinktype", "sinkbasintype"}),
    help=_help_text(),
)
WORDINGS = {wording.name: wording for wording in (PUT, MOVE)}

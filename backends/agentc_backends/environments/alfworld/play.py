"""An episode's state, rules, texts and goal: which commands are legal now, what they do and answer.

Rules are those of the domain `alfred`, texts those of its grammar, both oddities and all: only what
is held can be examined, `look` in the middle of a room sees nothing, nothing is ever turned off.
There are two wordings: `put X in/on Y` until ALFWorld 0.3, with which the papers of 2023 and 2024
were written, and `move X to Y` since 0.4."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from agentc_backends.environments.alfworld.games import House

Command: TypeAlias = Callable[[], str]
_KNIVES = ("knifetype", "butterknifetype")
_EXAMINED = (
    # First match wins; the states of `examineObject` in the grammar.
    ({"isclean", "ishot", "issliced"}, "This is a hot and clean sliced {}."),
    ({"isclean", "iscool", "issliced"}, "This is a cool and clean sliced {}."),
    ({"isclean", "issliced"}, "This is a clean sliced {}."),
    ({"ishot", "issliced"}, "This is a hot sliced {}."),
    ({"iscool", "issliced"}, "This is a cool sliced {}."),
    ({"isclean", "ishot"}, "This is a hot and clean {}."),
    ({"isclean", "iscool"}, "This is a cool and clean {}."),
    ({"ishot"}, "This is a hot {}."),
    ({"isclean"}, "This is a clean {}."),
    ({"iscool"}, "This is a cold {}."),
    ({"toggleable", "istoggled"}, "This {} is on."),
    ({"sliceable", "issliced"}, "This is a sliced {}."),
)
_OBJECT_STATES = ("isclean", "ishot", "iscool", "istoggled", "issliced")
_OBJECT_PROPERTIES = ("toggleable", "sliceable")


@dataclass(slots=True)
class Play:
    """One game being played. `contents` maps receptacles to what is in or on them; `moved` holds
    (object, receptacle) of what was taken away; `lying` (object, location)."""

    house: House
    wording: Wording
    location: str = ""
    held: str | None = None
    contents: dict[str, set[str]] = field(default_factory=dict)
    moved: set[tuple[str, str]] = field(default_factory=set)
    lying: set[tuple[str, str]] = field(default_factory=set)
    states: set[tuple[str, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        house = self.house
        self.location = house.start
        self.contents = {receptacle: set() for receptacle in house.place}
        for thing, receptacle in house.start_contents:
            self.contents[receptacle].add(thing)
        self.lying = set(house.start_lying)
        self.states = set(house.start_states)

    def opening(self) -> str:
        """What the agent sees first."""
        if self.here:
            return self._describe_room()
        seen = self._listed(sorted(self.house.place))
        return f"You are in the middle of a room. Looking quickly around you, you see {seen}."

    def act(self, command: str) -> tuple[str, bool]:
        """The answer, and whether the command was legal."""
        chosen = self.legal().get(command.strip())
        return (NOTHING_HAPPENS, False) if chosen is None else (chosen(), True)

    def legal(self) -> dict[str, Command]:
        """Every command that something comes of, with what does it."""
        name = self.house.names
        commands: dict[str, Command] = {"look": self._describe_room, "inventory": self._inventory}
        if self.wording.help is not None:
            commands["help"] = partial(str, self.wording.help)
        for receptacle, location in self.house.place.items():
            if location != self.location:
                commands[f"go to {name[receptacle]}"] = partial(self._go, receptacle)
        for receptacle in self.here:
            self._add_receptacle(commands, receptacle)
        if self.held is not None:
            self._add_held(commands, self.held)
        return commands

    @property
    def here(self) -> tuple[str, ...]:
        """The receptacles that the agent stands at."""
        return self.house.at.get(self.location, ())

    def is_accessible(self, receptacle: str) -> bool:
        return (
            ("openable", receptacle) not in self.house.can
            or ("opened", receptacle) in self.states
        )  # fmt: skip

    def _add_receptacle(self, commands: dict[str, Command], receptacle: str) -> None:
        house, name = self.house, self.house.names
        place = name[receptacle]
        commands[f"examine {place}"] = partial(self._seen_in, receptacle)
        if ("openable", receptacle) in house.can:
            if ("opened", receptacle) in self.states:
                commands[f"close {place}"] = partial(self._close, receptacle)
            else:
                commands[f"open {place}"] = partial(self._open, receptacle)
        for thing in self.contents[receptacle]:
            takes = self.held is None and ("pickupable", thing) in house.can
            if takes and self.is_accessible(receptacle):
                commands[f"take {name[thing]} from {place}"] = partial(
                    self._take, thing, receptacle
                )
            if ("toggleable", thing) in house.can:
                commands[f"use {name[thing]}"] = partial(self._use, thing)

    def _add_held(self, commands: dict[str, Command], held: str) -> None:
        house, name = self.house, self.house.names
        commands[f"examine {name[held]}"] = partial(self._seen, held)
        for receptacle in self.here:
            place, kind = name[receptacle], house.receptacle_types.get(receptacle, "")
            if (kind, house.object_types.get(held)) in house.fits and self.is_accessible(
                receptacle
            ):
                words = self.wording.place_action.format(name[held], place)
                commands[words] = partial(self._place, held, receptacle)
            if ("cleanable", held) in house.can and kind in self.wording.basins:
                commands[f"clean {name[held]} with {place}"] = partial(
                    self._treat, held, receptacle, "clean", "isclean", None
                )
            if ("heatable", held) in house.can and kind == "microwavetype":
                commands[f"heat {name[held]} with {place}"] = partial(
                    self._treat, held, receptacle, "heat", "ishot", "iscool"
                )
            if ("coolable", held) in house.can and kind == "fridgetype":
                commands[f"cool {name[held]} with {place}"] = partial(
                    self._treat, held, receptacle, "cool", "iscool", "ishot"
                )
        if house.object_types.get(held) in _KNIVES:
            for thing, location in self.lying:
                if location == self.location and ("sliceable", thing) in house.can:
                    commands[f"slice {name[thing]} with {name[held]}"] = partial(
                        self._slice, thing, held
                    )

    def _describe_room(self) -> str:
        if not self.here:
            return (
                "You are in the middle of a room. Looking quickly around you, you see nothing."
            )  # fmt: skip
        facing = self._listed(self.here, article="")
        beside = sorted(
            (thing, receptacle)
            for thing, location in self.lying
            if location == self.location
            for receptacle in self.here
            if (thing, receptacle) in self.moved
        )
        seen = self._listed([thing for thing, _ in beside])
        return f"You are facing the {facing}. Next to it, you see {seen}."

    def _inventory(self) -> str:
        if self.held is None:
            return "You are not carrying anything."
        return f"You are carrying: a {self.house.names[self.held]}."

    def _go(self, receptacle: str) -> str:
        self.location = self.house.place[receptacle]
        reached = self.location if self.wording.arrives_at_location else receptacle
        name = self.house.names.get(reached, reached)
        return f"You arrive at {name}. {self._seen_in(receptacle)}"

    def _open(self, receptacle: str) -> str:
        self.states.add(("opened", receptacle))
        return f"You open the {self.house.names[receptacle]}. {self._seen_in(receptacle)}"

    def _close(self, receptacle: str) -> str:
        self.states.discard(("opened", receptacle))
        return f"You close the {self.house.names[receptacle]}."

    def _take(self, thing: str, receptacle: str) -> str:
        self.contents[receptacle].discard(thing)
        self.moved.add((thing, receptacle))
        self.lying.discard((thing, self.location))
        self.held = thing
        names = self.house.names
        return f"You pick up the {names[thing]} from the {names[receptacle]}."

    def _place(self, thing: str, receptacle: str) -> str:
        self.contents[receptacle].add(thing)
        self.moved.discard((thing, receptacle))
        self.lying.add((thing, self.location))
        self.held = None
        names = self.house.names
        return self.wording.placed.format(names[thing], names[receptacle])

    def _use(self, thing: str) -> str:
        self.states.add(("istoggled", thing))
        return f"You turn on the {self.house.names[thing]}."

    def _treat(self, thing: str, receptacle: str, verb: str, gains: str, loses: str | None) -> str:
        self.states.add((gains, thing))
        if loses is not None:
            self.states.discard((loses, thing))
        names = self.house.names
        return f"You {verb} the {names[thing]} using the {names[receptacle]}."

    def _slice(self, thing: str, knife: str) -> str:
        self.states.add(("issliced", thing))
        return f"You sliced the {self.house.names[thing]} with the {self.house.names[knife]}."

    def _seen_in(self, receptacle: str) -> str:
        name = self.house.names[receptacle]
        seen = self._listed(sorted(self.contents[receptacle]))
        if ("openable", receptacle) not in self.house.can:
            return f"On the {name}, you see {seen}."
        if ("opened", receptacle) in self.states:
            return f"The {name} is open. In it, you see {seen}."
        return f"The {name} is closed."

    def _seen(self, thing: str) -> str:
        name = self.house.names[thing]
        if ("isreceptacleobject", thing) in self.house.can:
            # Two released games say of a pan that it is in itself, which TextWorld never lists.
            inner = sorted(i for i, outer in self.house.inside if outer == thing and i != thing)
            return f"This is a normal {name}. In it, you see {self._listed(inner)}."
        holds = {state for state in _OBJECT_STATES if (state, thing) in self.states}
        holds |= {word for word in _OBJECT_PROPERTIES if (word, thing) in self.house.can}
        for needed, text in _EXAMINED:
            if needed <= holds:
                return text.format(name)
        return f"There's nothing special about {name}."

    def _listed(self, things: Iterable[str], article: str = "a ") -> str:
        words = [article + self.house.names[thing] for thing in things]
        if len(words) < 2:
            return words[0] if words else "nothing"
        return ", ".join(words[:-1]) + ", and " + words[-1]


_MADE = {
    # kind -> what the object must be able to become, and to be
    "clean": ("cleanable", "isclean"),
    "heat": ("heatable", "ishot"),
    "cool": ("coolable", "iscool"),
}


def is_reached(play: Play) -> bool:
    """Whether the agent has done the task, at this moment."""
    goal, house = play.house.goal, play.house
    if goal.kind == "look":
        holds = play.held is not None and house.object_types.get(play.held) == goal.item
        return holds and any(
            house.object_types.get(thing) == goal.target
            and ("istoggled", thing) in play.states
            and ("toggleable", thing) in house.can
            for receptacle in play.here
            for thing in play.contents[receptacle]
        )
    needed = 2 if goal.kind == "two" else 1
    return any(
        sum(is_done(play, thing) for thing in play.contents[receptacle]) >= needed
        for receptacle, kind in house.receptacle_types.items()
        if kind == goal.target and receptacle in play.contents
    )


def is_done(play: Play, thing: str) -> bool:
    """Whether a thing is of the goal's type and in the state that the goal wants."""
    goal, house = play.house.goal, play.house
    if house.object_types.get(thing) != goal.item:
        return False
    if goal.kind not in _MADE:
        return True
    able, state = _MADE[goal.kind]
    return (able, thing) in house.can and (state, thing) in play.states


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

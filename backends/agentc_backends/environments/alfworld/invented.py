"""Invents games: rooms, things and tasks in the benchmark's six shapes, drawn from a seed.

They are written as PDDL problems and read like any other game. `valid_seen` and `valid_train` play
in the rooms of `train`, `valid_unseen` in others. `places.py` says what may be
where.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from agentc_backends.environments.alfworld.games import HouseholdGame, make_game
from agentc_backends.environments.alfworld.places import LIKELY_PLACES
from agentc_backends.environments.alfworld.settings import ROOMS, TASKS

_T = TypeVar("_T")

# Receptacles of a kind of room, with how many there may be.
_ROOMS: Mapping[str, Mapping[str, tuple[int, ...]]] = {
    "kitchen": {
        "Cabinet": (3, 4, 6), "CounterTop": (1, 2, 3), "CoffeeMachine": (1,), "DiningTable": (0, 1),
        "Drawer": (2, 3, 5), "Fridge": (1,), "GarbageCan": (1,), "Microwave": (1,),
        "Shelf": (0, 2), "SinkBasin": (1,), "StoveBurner": (2, 4), "Toaster": (1,),
    },
    "livingroom": {
        "ArmChair": (1, 2), "CoffeeTable": (1,), "Desk": (1,), "Drawer": (0, 2), "Dresser": (0, 1),
        "GarbageCan": (1,), "Shelf": (0, 3), "SideTable": (1, 2), "Sofa": (1,), "TVStand": (0, 1),
    },
    "bedroom": {
        "Bed": (1,), "Desk": (1, 2), "Drawer": (2, 4), "Dresser": (0, 1), "GarbageCan": (1,),
        "Safe": (0, 1), "Shelf": (1, 4), "SideTable": (1, 2), "LaundryHamper": (0, 1),
    },
    "bathroom": {
        "BathtubBasin": (1,), "Cabinet": (2, 4), "CounterTop": (1,), "GarbageCan": (1,),
        "HandTowelHolder": (1,), "Shelf": (0, 1), "SideTable": (0, 1), "SinkBasin": (1, 2),
        "Toilet": (1,), "ToiletPaperHanger": (1,), "TowelHolder": (1,),
    },
}  # fmt: skip
_OPENABLE = frozenset({"Cabinet", "Drawer", "Fridge", "Microwave", "Safe"})
_THINGS = {
    "kitchen": "Apple Bowl Bread ButterKnife Cup DishSponge Egg Fork Knife Lettuce Mug Pan "
    "PepperShaker Plate Pot Potato SaltShaker Spatula Spoon Tomato",
    "livingroom": "Book Box CellPhone CreditCard DeskLamp KeyChain Laptop Newspaper Pen Pencil "
    "Pillow RemoteControl Statue TissueBox Vase Watch WateringCan",
    "bedroom": "AlarmClock Book Bowl CD CellPhone CreditCard DeskLamp KeyChain Laptop Mug Pen "
    "Pencil Pillow",
    "bathroom": "Candle Cloth HandTowel SoapBar SoapBottle SprayBottle TissueBox ToiletPaper Towel",
}
_ABILITIES = {
    "cleanable": "Apple Bowl ButterKnife Cloth Cup DishSponge Egg Fork Knife Lettuce Mug Pan Plate "
    "Pot Potato SoapBar Spatula Spoon Tomato",
    "heatable": "Apple Bread Cup Egg Mug Plate Potato Tomato",
    "coolable": "Apple Bowl Bread Cup Egg Lettuce Mug Pan Plate Pot Potato Tomato",
    "sliceable": "Apple Bread Lettuce Potato Tomato",
}
_LAMPS = frozenset({"DeskLamp"})
_PLANS = {"train": 40, "valid_unseen": 12}
_SHARED = 0.15
"""How often a receptacle stands where another does, as a toaster on a counter."""
_TASKS = {
    "put": ("pick_and_place_simple", "put a {item} in {target}.", "put some {item} on {target}."),
    "two": ("pick_two_obj_and_place", "put two {item} in {target}.",
            "find two {item} and put them in {target}."),
    "clean": ("pick_clean_then_place_in_recep", "put a clean {item} in {target}.",
              "clean some {item} and put it in {target}."),
    "heat": ("pick_heat_then_place_in_recep", "put a hot {item} in {target}.",
             "heat some {item} and put it in {target}."),
    "cool": ("pick_cool_then_place_in_recep", "put a cool {item} in {target}.",
             "cool some {item} and put it in {target}."),
    "look": ("look_at_obj_in_light", "look at {item} under the {target}.",
             "examine the {item} with the {target}."),
}  # fmt: skip
_TOOLS = {"clean": "SinkBasin", "heat": "Microwave", "cool": "Fridge"}
_NEEDS = {"clean": "cleanable", "heat": "heatable", "cool": "coolable"}
_MADE = {
    "clean": "(cleanable ?o) (isClean ?o)",
    "heat": "(heatable ?o) (isHot ?o)",
    "cool": "(coolable ?o) (isCool ?o)",
}


@dataclass(frozen=True, slots=True)
class _Room:
    """`receptacles`: (type, id, location)."""

    kind: str
    number: int
    receptacles: tuple[tuple[str, str, str], ...]

    @property
    def types(self) -> list[str]:
        return sorted({kind for kind, _, _ in self.receptacles})


@dataclass(frozen=True, slots=True)
class _Task:
    kind: str
    item: str
    target: str


@lru_cache(maxsize=8)
def invented_games(
    part: str,
    count: int,
    seed: int,
    rooms: tuple[str, ...] = ROOMS,
    tasks: tuple[str, ...] = TASKS,
) -> tuple[HouseholdGame, ...]:
    """The first `count` games of a part; a smaller count gives the same first ones. `rooms` and
    `tasks` are of ROOMS and TASKS, in any order; `playable` says whether they go together."""
    kinds = tuple(kind for kind in TASKS if kind in tasks)
    return tuple(_invented(part, number, seed, rooms, kinds) for number in range(count))


def playable(rooms: Iterable[str], tasks: Iterable[str]) -> bool:
    """Whether some of the tasks can be done in some of the rooms."""
    return any(_has_what(kind, room) for room in rooms for kind in tasks)


def _has_what(kind: str, room: str) -> bool:
    """Whether a kind of room has what a kind of task takes."""
    if kind == "look":
        return bool(_LAMPS & {*_THINGS[room].split()})
    return kind not in _TOOLS or _TOOLS[kind] in _ROOMS[room]


def _invented(
    part: str, number: int, seed: int, rooms: tuple[str, ...], tasks: tuple[str, ...]
) -> HouseholdGame:
    draw = _Draw(f"alfworld/{seed}/{part}/{number}")
    while True:
        room = _room(part, draw, seed, rooms)
        task = _task(room, draw, tasks)
        things = None if task is None else _room_objects(room, task, draw)
        if task is not None and things is not None:
            break
    name, *texts = _TASKS[task.kind]
    words = draw.pick(texts).format(item=task.item.lower(), target=task.target.lower())
    return make_game(
        f"{name}-{task.item}-None-{task.target}-{room.number}",
        f"trial_invented_{seed}_{part}_{number:05d}",
        f"Your task is to: {words}",
        _problem(room, task, things),
    )


class _Draw:
    """A private generator; only random() is promised to be the same in every Python version."""

    def __init__(self, seed: str) -> None:
        self._rng = random.Random(seed)

    def pick(self, options: Sequence[_T]) -> _T:
        return options[int(self._rng.random() * len(options))]

    def early(self, options: Sequence[_T]) -> _T:
        """One of the options, more often one of the first."""
        return options[int(self._rng.random() ** 2 * len(options))]

    def happens(self, share: float) -> bool:
        return self._rng.random() < share


def _room(part: str, draw: _Draw, seed: int, rooms: tuple[str, ...]) -> _Room:
    pool = "valid_unseen" if part == "valid_unseen" else "train"
    number = draw.pick([each for each in range(_PLANS[pool]) if _kind(each) in rooms])
    plan = _Draw(f"alfworld/{seed}/rooms/{pool}/{number}")
    kind = _kind(number)
    receptacles: list[tuple[str, str, str]] = []
    for word, counts in _ROOMS[kind].items():
        for index in range(1, plan.pick(counts) + 1):
            location = f"loc_bar_{len(receptacles) + 1:02d}"
            if receptacles and plan.happens(_SHARED):
                location = receptacles[-1][2]
            receptacles.append((word, _receptacle_id(word, index), location))
    return _Room(kind, number + (500 if pool == "valid_unseen" else 1), tuple(receptacles))


def _kind(number: int) -> str:
    """Rooms of all kinds take turns."""
    return ROOMS[number % len(ROOMS)]


def _receptacle_id(word: str, index: int) -> str:
    if word.endswith("Basin"):
        # The benchmark names a basin by what it is part of.
        return f"{word.removesuffix('Basin')}_bar_{index:02d}_bar_{word}"
    return f"{word}_bar_{index:02d}"


def _task(room: _Room, draw: _Draw, tasks: tuple[str, ...]) -> _Task | None:
    """A kind of task that the room has what it takes for, or None."""
    kind = draw.pick(tasks)
    things = [w for w in _THINGS[room.kind].split() if w not in _LAMPS]
    if kind == "look":
        lamps = [w for w in _THINGS[room.kind].split() if w in _LAMPS]
        return _Task(kind, draw.pick(things), lamps[0]) if lamps else None
    if kind in _TOOLS and _TOOLS[kind] not in room.types:
        return None
    able = [w for w in things if kind not in _NEEDS or _NEEDS[kind] in _abilities(w)]
    if not able:
        return None
    item = draw.pick(able)
    fitting = _places(item, room)
    return _Task(kind, item, draw.pick(fitting)) if len(fitting) > 1 else None


def _places(thing: str, room: _Room) -> list[str]:
    """Types of the room's receptacles that a thing fits into, the likeliest first."""
    types = {kind.lower(): kind for kind in room.types}
    return [types[word] for word in LIKELY_PLACES.get(thing.lower(), ()) if word in types]


def _room_objects(room: _Room, task: _Task, draw: _Draw) -> list[tuple[str, str, str, str]] | None:
    """(type, id, receptacle, location) of everything in the room; None if the task's is not."""
    found: list[tuple[str, str, str, str]] = []
    for word in _THINGS[room.kind].split():
        places = _places(word, room)
        count = draw.pick((0, 1, 1, 2, 3))
        if word == task.item:
            # Not where it belongs in the end, or the task would be done before it starts.
            places = [place for place in places if place != task.target]
            count = max(count, 2 if task.kind == "two" else 1)
        elif task.kind == "look" and word == task.target:
            count = 1
        if not places and (word in (task.item, task.target)):
            return None
        for index in range(1, count + 1 if places else 1):
            kind = draw.early(places)
            chosen = draw.pick([each for each in room.receptacles if each[0] == kind])
            found.append((word, f"{word}_bar_{index:02d}", chosen[1], chosen[2]))
    return found


def _problem(room: _Room, task: _Task, things: Iterable[tuple[str, str, str, str]]) -> str:
    facts = ["(atLocation agent1 loc_bar_00)"]
    for kind, receptacle, location in room.receptacles:
        facts.append(f"(receptacleType {receptacle} {kind}Type)")
        facts.append(f"(receptacleAtLocation {receptacle} {location})")
        if kind in _OPENABLE:
            facts.append(f"(openable {receptacle})")
    for kind, thing, receptacle, location in things:
        facts.append(f"(objectType {thing} {kind}Type)")
        facts.append(f"(inReceptacle {thing} {receptacle})")
        facts.append(f"(objectAtLocation {thing} {location})")
        facts += [f"({able} {thing})" for able in _abilities(kind)]
    for word in _THINGS[room.kind].split():
        facts += [f"(canContain {place}Type {word}Type)" for place in _places(word, room)]
    listed = "\n".join(facts)
    return f"(:init\n{listed}\n)\n(:goal {_goal(task)}\n))"


def _abilities(kind: str) -> list[str]:
    if kind in _LAMPS:
        return ["toggleable"]
    held = [ability for ability, things in _ABILITIES.items() if kind in things.split()]
    return ["pickupable", *held]


def _goal(task: _Task) -> str:
    """One of the six formulas of the domain's tasks."""
    item, target = f"{task.item}Type", f"{task.target}Type"
    if task.kind == "look":
        lamp = (f"(objectType ?l {target}) (toggleable ?l) (isToggled ?l) (inReceptacle ?l ?r) "
                "(receptacleAtLocation ?r ?p) (atLocation ?a ?p)")  # fmt: skip
        return (
            f"(and (exists (?l - object ?r - receptacle ?a - agent ?p - location) (and {lamp})) "
            f"(exists (?o - object ?a - agent) (and (objectType ?o {item}) (holds ?a ?o))))"
        )
    first = f"(objectType ?o {item}) (receptacleType ?r {target}) (inReceptacle ?o ?r)"
    if task.kind == "two":
        first += (f" (exists (?o2 - object) (and (not (= ?o ?o2)) (objectType ?o2 {item}) "
                  "(inReceptacle ?o2 ?r)))")  # fmt: skip
    made = _MADE.get(task.kind, "")
    return f"(exists (?r - receptacle) (exists (?o - object) (and {made} {first})))"

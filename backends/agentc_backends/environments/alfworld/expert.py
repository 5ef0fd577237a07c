"""Two experts: one knows where everything is, the other looks for it in likely places.

Both play the game and write down what they do, with a plain thought for each action. The explorer
decides by nothing but the task and what it has seen so far.
"""

from __future__ import annotations

from collections.abc import Iterable

from agentc_backends.environments.alfworld.games import House
from agentc_backends.environments.alfworld.places import LIKELY_PLACES
from agentc_backends.environments.alfworld.play import Play, Wording, is_reached
from agentc_backends.environments.server.world import ExpertAction

_TREATMENTS = {
    # kind -> verb, what a thing must be, receptacle types that do it
    "clean": ("clean", "cleanable", ("sinkbasintype",)),
    "heat": ("heat", "heatable", ("microwavetype",)),
    "cool": ("cool", "coolable", ("fridgetype",)),
}


class NoPlanError(ValueError):
    """The expert does not find what the task needs."""


def recorded(
    house: House, walkthrough: Iterable[str], wording: Wording
) -> tuple[ExpertAction, ...]:
    """A walkthrough that comes with a game (`move X to Y`), in a wording, as far as the goal."""
    play, steps = Play(house, wording), []
    for action in walkthrough:
        if is_reached(play):
            break
        if action.startswith("move ") and " to " in action:
            action = wording.place_action.format(*action[len("move ") :].split(" to ", 1))
        play.act(action)
        steps.append(ExpertAction(action, f"Next, I {action}."))
    return tuple(steps)


def plan(house: House, wording: Wording, *, knows_all: bool) -> tuple[ExpertAction, ...]:
    """Actions from the start to the goal. Raises NoPlanError."""
    return _Expert(house, wording, knows_all).solve()


class _Expert:
    """Plays a game; `seen` are the receptacles whose contents it knows."""

    def __init__(self, house: House, wording: Wording, knows_all: bool) -> None:
        self.house = house
        self.play = Play(house, wording)
        self.seen = set(house.place) if knows_all else set()
        self.steps: list[ExpertAction] = []
        self.target: str | None = None

    def solve(self) -> tuple[ExpertAction, ...]:
        goal = self.house.goal
        if goal.kind == "look":
            self._fetch(goal.item)
            self._light(goal.target)
        while not is_reached(self.play):
            if len(self.steps) > 500:
                raise NoPlanError("no end in sight")
            thing = self._fetch(goal.item)
            if goal.kind in _TREATMENTS:
                self._treat(thing, goal.kind)
            # A pan that is on two burners at once, and taken from one, is still on the other.
            if not is_reached(self.play):
                self._bring(thing)
        return tuple(self.steps)

    def _fetch(self, kind: str) -> str:
        """Find a thing of a type and take it."""
        thing, receptacle = self._locate(kind, "pickupable")
        name = self.house.names
        self._stand_at(receptacle, f"I go to the {name[receptacle]}, where the {name[thing]} is.")
        self._act(
            f"The {name[thing]} is here. I take it.",
            f"take {name[thing]} from {name[receptacle]}",
        )
        return thing

    def _light(self, kind: str) -> None:
        lamp, receptacle = self._locate(kind, "toggleable")
        name = self.house.names
        self._stand_at(receptacle, f"The {name[lamp]} is at the {name[receptacle]}. I go there.")
        self._act("Now I turn on the light.", f"use {name[lamp]}")

    def _treat(self, thing: str, kind: str) -> None:
        verb, _, types = _TREATMENTS[kind]
        places = self._receptacles(types)
        if not places:
            raise NoPlanError(f"nothing to {verb} with")
        name, place = self.house.names, places[0]
        self._walk(place, f"I have to {verb} it, so I go to the {name[place]}.")
        self._act(
            f"Now I {verb} the {name[thing]}.", f"{verb} {name[thing]} with {name[place]}"
        )  # fmt: skip

    def _bring(self, thing: str) -> None:
        place = self._chosen_target()
        name = self.house.names
        self._stand_at(place, f"I take it to the {name[place]}.")
        self._act(
            f"Now I put it down in its place, the {name[place]}.",
            self.play.wording.place_action.format(name[thing], name[place]),
        )
        self.target = place

    def _chosen_target(self) -> str:
        """Where to put things: for two things, beside one that lies there already."""
        places = self._receptacles((self.house.goal.target,))
        if not places:
            raise NoPlanError("no receptacle of the goal's type")
        counts = {place: self._seen_items(place) for place in places}
        return max(places, key=lambda place: (counts[place], place == self.target))

    def _seen_items(self, place: str) -> int:
        if place not in self.seen or self.house.goal.kind != "two":
            return 0
        types = self.house.object_types
        return sum(types.get(t) == self.house.goal.item for t in self.play.contents[place])

    def _locate(self, kind: str, able: str) -> tuple[str, str]:
        """A known thing of a type with its receptacle; looks for one where none is known."""
        while True:
            known = self._seen_item(kind, able)
            if known is not None:
                return known
            unseen = self._unseen(kind)
            if not unseen:
                raise NoPlanError(f"there is no {_word(kind)}")
            name = self.house.names[unseen[0]]
            self._stand_at(unseen[0], f"A {_word(kind)} may be at the {name}. I look there.")
            if unseen[0] not in self.seen:
                self._inspect(unseen[0], f"I see what is at the {name}.")

    def _seen_item(self, kind: str, able: str) -> tuple[str, str] | None:
        goal = self.house.goal
        treatment = _TREATMENTS.get(goal.kind)
        placed = self._chosen_target() if goal.kind == "two" else None
        for receptacle in sorted(self.seen, key=self._number):
            if receptacle == placed and kind == goal.item:
                continue
            for thing in sorted(self.play.contents[receptacle]):
                fits = self.house.object_types.get(thing) == kind
                fits = fits and (able, thing) in self.house.can
                if treatment is not None and kind == goal.item:
                    fits = fits and (treatment[1], thing) in self.house.can
                if fits:
                    return thing, receptacle
        return None

    def _unseen(self, kind: str) -> list[str]:
        likely = [f"{place}type" for place in LIKELY_PLACES.get(_word(kind), ())]

        def order(receptacle: str) -> tuple[int, bool, tuple[str, int]]:
            type_of = self.house.receptacle_types.get(receptacle, "")
            rank = likely.index(type_of) if type_of in likely else len(likely)
            closed = ("openable", receptacle) in self.house.can
            return rank, closed, self._number(receptacle)

        return sorted(set(self.house.place) - self.seen, key=order)

    def _receptacles(self, types: Iterable[str]) -> list[str]:
        kinds = set(types)
        found = [r for r in self.house.place if self.house.receptacle_types.get(r) in kinds]
        return sorted(found, key=self._number)

    def _number(self, receptacle: str) -> tuple[str, int]:
        word, _, number = self.house.names[receptacle].rpartition(" ")
        return word, int(number)

    def _stand_at(self, receptacle: str, thought: str) -> None:
        """Go to a receptacle and open it, where needed."""
        self._walk(receptacle, thought)
        if not self.play.is_accessible(receptacle):
            name = self.house.names[receptacle]
            self._act(f"The {name} is closed. I open it.", f"open {name}")
            self.seen.add(receptacle)

    def _walk(self, receptacle: str, thought: str) -> None:
        if self.play.location == self.house.place[receptacle]:
            return
        self._act(thought, f"go to {self.house.names[receptacle]}")
        if self.play.is_accessible(receptacle):
            self.seen.add(receptacle)

    def _inspect(self, receptacle: str, thought: str) -> None:
        self._act(thought, f"examine {self.house.names[receptacle]}")
        self.seen.add(receptacle)

    def _act(self, thought: str, action: str) -> None:
        _, legal = self.play.act(action)
        if not legal:
            raise NoPlanError(f"{action} is not possible")
        self.steps.append(ExpertAction(action, thought))


def _word(kind: str) -> str:
    return kind.removesuffix("type")

"""Whether a game's goal holds. Neighbours: `problem.py` (which goal), `play.py` (the state)."""

from __future__ import annotations

from agentc_backends.environments.alfworld.play import Play

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

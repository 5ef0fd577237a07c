"""Plans the actions that reach a goal, by chaining backwards from it, and words a thought for each.

Needs are summed over the whole plan before crafting, so that surplus of one batch serves the
next; recipes and tag items are then exchanged one at a time while that shortens the plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from agentc_backends.environments.textcraft.recipe_files import Recipe, display_name
from agentc_backends.environments.textcraft.recipes import RecipeBook

# Which recipe makes an item (item -> index) and which item stands for a tag (tag -> index).
_Choices = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One action of a plan, and why it is taken."""

    action: str
    thought: str


@dataclass(frozen=True, slots=True)
class _Use:
    """`count` of an item go into each of `crafts` crafts of `output`."""

    output: str
    count: int
    crafts: int


@dataclass(frozen=True, slots=True)
class _Layout:
    """The items of a plan, inputs before outputs: how many are needed, and for what."""

    order: tuple[str, ...]
    needed: Mapping[str, int]
    crafts: Mapping[str, int]
    uses: Mapping[str, tuple[_Use, ...]]

    @property
    def length(self) -> int:
        return sum(self.crafts.get(item, 1) for item in self.order)


def plan(book: RecipeBook, goal: str) -> tuple[PlanStep, ...]:
    """A short plan from an empty inventory; the last action crafts the goal."""
    choices = _choose(book, goal)
    layout = _lay_out(book, goal, choices)
    steps: list[PlanStep] = []
    for item in layout.order:
        steps += _steps_for(book, item, goal, layout, choices)
    return tuple(steps)


def _choose(book: RecipeBook, goal: str) -> dict[str, int]:
    choices: dict[str, int] = {}
    best = _lay_out(book, goal, choices).length
    improved = True
    while improved:
        improved = False
        for name, size in _choice_points(book, goal, choices):
            for index in range(size):
                trial = {**choices, name: index}
                length = _lay_out(book, goal, trial).length
                if length < best:
                    choices, best, improved = trial, length, True
    return choices


def _choice_points(book: RecipeBook, goal: str, choices: _Choices) -> list[tuple[str, int]]:
    """The names that the current plan had to choose for, with the number of ways."""
    points: dict[str, int] = {}
    for item in _lay_out(book, goal, choices).order:
        recipes = book.recipes_for.get(item, ())
        if len(recipes) > 1:
            points[item] = len(recipes)
        for part in _recipe(book, item, choices).ingredients if recipes else ():
            if part.is_tag:
                points[part.name] = len(book.members[part.name])
    return list(points.items())


def _recipe(book: RecipeBook, item: str, choices: _Choices) -> Recipe:
    return book.recipes_for[item][choices.get(item, 0)]


def _inputs(book: RecipeBook, item: str, choices: _Choices) -> Iterator[tuple[str, int]]:
    """The items, with counts, that go into one craft of `item`."""
    if item in book.recipes_for:
        for part in _recipe(book, item, choices).ingredients:
            options = book.options(part.name, is_tag=part.is_tag)
            yield options[choices.get(part.name, 0) if part.is_tag else 0], part.count


def _lay_out(book: RecipeBook, goal: str, choices: _Choices) -> _Layout:
    order: dict[str, None] = {}

    def visit(item: str) -> None:
        if item not in order:
            for part, _ in _inputs(book, item, choices):
                visit(part)
            order[item] = None

    visit(goal)
    needed = dict.fromkeys(order, 0)
    needed[goal] = 1
    crafts: dict[str, int] = {}
    uses: dict[str, tuple[_Use, ...]] = dict.fromkeys(order, ())
    # Outputs before inputs: every need of an item is known when its batches are counted.
    for item in reversed(order):
        if item in book.recipes_for:
            crafts[item] = -(-needed[item] // _recipe(book, item, choices).count)
            for part, count in _inputs(book, item, choices):
                needed[part] += count * crafts[item]
                uses[part] += (_Use(item, count, crafts[item]),)
    return _Layout(tuple(order), needed, crafts, uses)


def _steps_for(
    book: RecipeBook, item: str, goal: str, layout: _Layout, choices: _Choices
) -> Iterator[PlanStep]:
    name = display_name(item)
    if item not in layout.crafts:
        count = layout.needed[item]
        purpose = _purpose(item, layout)
        yield PlanStep(
            f"get {count} {name}", f"I need {count} {name} to craft {purpose}, so I get {count}."
        )
        return
    batch = _recipe(book, item, choices).count
    inputs = ", ".join(f"{n} {display_name(part)}" for part, n in _inputs(book, item, choices))
    action = f"craft {batch} {name} using {inputs}"
    for made in range(0, layout.crafts[item] * batch, batch):
        if item == goal:
            yield PlanStep(action, f"I have {inputs}, so I craft the goal, {name}.")
        else:
            yield PlanStep(action, _thought(item, made, layout))


def _thought(item: str, made: int, layout: _Layout) -> str:
    name = display_name(item)
    needed = layout.needed[item]
    purpose = _purpose(item, layout)
    if made == 0:
        return f"I need {needed} {name} to craft {purpose}, so I craft {name} first."
    return f"I need {needed} {name} to craft {purpose} and have {made}, so I craft {name} again."


def _purpose(item: str, layout: _Layout) -> str:
    """What the item is for, e.g. `stick and wooden sword`."""
    uses = sorted(layout.uses[item], key=lambda use: layout.order.index(use.output))
    names = [display_name(use.output) for use in uses]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"

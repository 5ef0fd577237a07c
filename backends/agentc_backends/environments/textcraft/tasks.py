"""The tasks that a choice of settings leaves: goals by split, and their expert plans. They are
shared by every environment with the same settings.

A plan chains backwards from its goal. Needs are summed over the whole plan before crafting, so that
surplus of one batch serves the next; recipes and tag items are then exchanged one at a time while
that shortens the plan."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from agentc_backends.environments.server.world import ExpertAction, TaskLists
from agentc_backends.environments.textcraft.recipes import Recipe, RecipeBook, display_name
from agentc_backends.environments.textcraft.settings import ExpertStyle, TextCraftSettings


class TextCraftTasks:
    """The goals that the settings leave, their splits and, made when asked for, their plans."""

    def __init__(self, book: RecipeBook, settings: TextCraftSettings) -> None:
        self.book = book
        self.settings = settings
        self._plans: dict[str, tuple[ExpertAction, ...]] = {}
        self.lists = TaskLists(
            {
                split: tuple(goal for goal in goals if self._within_limits(goal))
                for split, goals in split_goals(book).items()
            }
        )
        if not self.lists.known:
            raise ValueError(f"no TextCraft task is left by {settings}")

    def plan(self, goal: str) -> tuple[ExpertAction, ...]:
        if goal not in self._plans:
            self._plans[goal] = _styled(plan(self.book, goal), self.settings.expert_style)
        return self._plans[goal]

    def _within_limits(self, goal: str) -> bool:
        max_depth, max_steps = self.settings.max_depth, self.settings.max_expert_steps
        return (max_depth is None or self.book.depths[goal] <= max_depth) and (
            max_steps is None or len(self.plan(goal)) <= max_steps
        )


@lru_cache(maxsize=16)
def load_tasks(book: RecipeBook, settings: TextCraftSettings) -> TextCraftTasks:
    """The tasks of a book under these settings, computed once."""
    return TextCraftTasks(book, settings)


def _styled(steps: tuple[ExpertAction, ...], style: ExpertStyle) -> tuple[ExpertAction, ...]:
    """`recipe_first` recalls every recipe of the plan in its first thought, goal first, and then
    acts without thinking; its craft actions leave out the output's count, which the game ignores.
    What it writes is then a copy, left to right, of something that is already in the text.
    """
    if style == "stepwise":
        return steps
    actions = [_without_output_count(step.action) for step in steps]
    recipes = [action[len("craft ") :] for action in reversed(actions) if action[:6] == "craft "]
    thought = "; ".join(dict.fromkeys(recipes))
    return tuple(
        step._replace(action=action, thought="" if number else thought)
        for number, (step, action) in enumerate(zip(steps, actions, strict=True))
    )


def _without_output_count(action: str) -> str:
    words = action.split(" ")
    return " ".join([words[0], *words[2:]]) if words[0] == "craft" else action


# Upstream has no splits. A goal's split depends only on its name and on the goals of its depth,
# never on options of the environment, so that narrowing the tasks moves none of them.

SPLITS = ("train", "validation", "test")
_TRAIN_PERCENT = 70
_VALIDATION_PERCENT = 10


def split_goals(book: RecipeBook) -> dict[str, tuple[str, ...]]:
    """About 70/10/20 of the goals at every crafting depth, each split sorted."""
    parts: dict[str, list[str]] = {name: [] for name in SPLITS}
    for depth in sorted({book.depths[goal] for goal in book.goals}):
        goals = _hash_order(goal for goal in book.goals if book.depths[goal] == depth)
        first = (len(goals) * _TRAIN_PERCENT + 50) // 100
        second = (len(goals) * (_TRAIN_PERCENT + _VALIDATION_PERCENT) + 50) // 100
        parts["train"] += goals[:first]
        parts["validation"] += goals[first:second]
        parts["test"] += goals[second:]
    return {name: tuple(sorted(goals)) for name, goals in parts.items()}


def _hash_order(goals: Iterable[str]) -> list[str]:
    return sorted(goals, key=lambda goal: hashlib.sha256(f"split/1/{goal}".encode()).digest())


# Which recipe makes an item (item -> index) and which item stands for a tag (tag -> index).
_Choices = Mapping[str, int]


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


def plan(book: RecipeBook, goal: str) -> tuple[ExpertAction, ...]:
    """A short plan from an empty inventory; the last action crafts the goal."""
    choices = _choose(book, goal)
    layout = _lay_out(book, goal, choices)
    steps: list[ExpertAction] = []
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
) -> Iterator[ExpertAction]:
    name = display_name(item)
    if item not in layout.crafts:
        count = layout.needed[item]
        purpose = _purpose(item, layout)
        yield ExpertAction(
            f"get {count} {name}", f"I need {count} {name} to craft {purpose}, so I get {count}."
        )
        return
    batch = _recipe(book, item, choices).count
    inputs = ", ".join(f"{n} {display_name(part)}" for part, n in _inputs(book, item, choices))
    action = f"craft {batch} {name} using {inputs}"
    for made in range(0, layout.crafts[item] * batch, batch):
        if item == goal:
            yield ExpertAction(action, f"I have {inputs}, so I craft the goal, {name}.")
        else:
            yield ExpertAction(action, _thought(item, made, layout))


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

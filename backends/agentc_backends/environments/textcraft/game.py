"""The rules of TextCraft (one goal, one inventory, and the actions get, craft and inventory), and
the opening text of a task.

Observation strings are exactly those of AgentGym's TextCraft server. Pure, standard library only.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agentc_backends.environments.textcraft.recipes import Recipe, RecipeBook, display_name

# More digits than nine are no amount: they serve only to make integers without bound.
_COUNTED = re.compile(r"([0-9]{1,9}) (.*)")
_CRAFT = re.compile(r"craft (.*) using (.*)")
_GET = re.compile(r"get ([0-9]{1,9}) (.*)")


@dataclass(frozen=True, slots=True)
class ActionOutcome:
    """What one action led to."""

    observation: str
    reward: float
    done: bool


class _ActionFailedError(Exception):
    """The action changes nothing; the message is the observation."""


class TextCraftGame:
    """One episode: reward 1 when the goal is crafted for the first time, else 0."""

    __slots__ = ("_book", "_done", "_end_on_refusal", "_goal", "_inventory")

    def __init__(
        self,
        book: RecipeBook,
        goal: str,
        *,
        inventory: Mapping[str, int] | None = None,
        done: bool = False,
        end_on_refusal: bool = False,
    ) -> None:
        if goal not in book.recipes_for:
            raise KeyError(f"{goal} cannot be crafted, so it is no goal")
        self._book = book
        self._goal = goal
        self._inventory = dict(inventory or {})
        self._done = done
        self._end_on_refusal = end_on_refusal

    @property
    def goal(self) -> str:
        return self._goal

    @property
    def done(self) -> bool:
        return self._done

    @property
    def inventory(self) -> dict[str, int]:
        """A copy, in the order in which items were first obtained (observations show it)."""
        return dict(self._inventory)

    def step(self, action: str) -> ActionOutcome:
        """Carry out one action; after the goal the world still answers, without reward."""
        reward = 0.0
        try:
            if match := _CRAFT.match(action):
                made = self._craft(match[1], match[2])
                observation = f"Crafted {made.count} {made.output}"
                if made.output == self._goal and not self._done:
                    reward = 1.0
                    self._done = True
            elif match := _GET.match(action):
                self._get(match[2], int(match[1]))
                observation = f"Got {int(match[1])} {match[2]}"
            elif action.startswith("inventory"):
                observation = self._inventory_text()
            else:
                raise _ActionFailedError(f"Could not execute {action}")
        except _ActionFailedError as failure:
            observation = str(failure)
            self._done = self._done or self._end_on_refusal
        return ActionOutcome(observation, reward, self._done)

    def _get(self, text: str, count: int) -> None:
        item = _item_id(text)
        if self._book.is_tag(item) or not self._book.is_base(item):
            raise _ActionFailedError(f"Could not find {text}")
        self._add(item, count)

    def _craft(self, output_text: str, inputs_text: str) -> Recipe:
        counted = _COUNTED.match(output_text)
        output = _item_id(counted[2] if counted else output_text)
        output_count = int(counted[1]) if counted else 1
        inputs = [_counted_item(part.strip()) for part in inputs_text.split(",")]
        output_tag, output_item = (output, None) if self._book.is_tag(output) else (None, output)
        # A tag cannot be carried: only its items can, so naming one is a lack of items.
        if any(self._inventory.get(item, -1) < count for item, count in inputs):
            raise _ActionFailedError(f"Could not find enough items to craft {output_item}")
        recipe = self._find_recipe(output, inputs)
        if recipe is None:
            raise _ActionFailedError(
                "Could not find a valid recipe for ItemTagWithCount(item_tag=ItemTag("
                f"tag={output_tag!r}, item_id={output_item!r}), count={output_count})"
            )
        for item, count in inputs:
            self._inventory[item] -= count
            if self._inventory[item] == 0:
                del self._inventory[item]
        self._add(recipe.output, recipe.count)
        return recipe

    def _find_recipe(self, output: str, inputs: Sequence[tuple[str, int]]) -> Recipe | None:
        if len({item for item, _ in inputs}) == len(inputs):
            for recipe in self._book.recipes_for.get(output, ()):
                if self._uses_exactly(recipe, inputs):
                    return recipe
        return None

    def _uses_exactly(self, recipe: Recipe, inputs: Sequence[tuple[str, int]]) -> bool:
        """Each ingredient is met by one input, in any order, with the exact count."""
        left = list(inputs)
        for part in recipe.ingredients:
            accepted = self._book.options(part.name, is_tag=part.is_tag)
            found = next((i for i in left if i[0] in accepted and i[1] == part.count), None)
            if found is None:
                return False
            left.remove(found)
        return not left

    def _add(self, item: str, count: int) -> None:
        if count:
            self._inventory[item] = self._inventory.get(item, 0) + count

    def _inventory_text(self) -> str:
        if not self._inventory:
            return "Inventory: You are not carrying anything."
        rows = (f"[{display_name(item)}] ({count}) " for item, count in self._inventory.items())
        return "Inventory: " + "".join(rows)


def _item_id(text: str) -> str:
    return "minecraft:" + text.replace(" ", "_")


def _counted_item(text: str) -> tuple[str, int]:
    match = _COUNTED.match(text)
    if match is None:
        raise _ActionFailedError(f"Wrong item format: {text}")
    return _item_id(match[2]), int(match[1])


# The opening text: the useful crafting commands, some others, and the goal. The choice and order of
# the commands come from a private generator seeded by (goal, seed), so a prompt is the same in
# every process.

_USES_PER_INGREDIENT = 10


def task_prompt(book: RecipeBook, goal: str, *, distractors: int, seed: int = 0) -> str:
    """The first observation of a task; `seed` varies only the distractors and the order."""
    rng = random.Random(f"textcraft/{goal}/{seed}")
    relevant = relevant_recipes(book, goal)
    commands = list(dict.fromkeys(recipe.command for recipe in relevant))
    commands += _distractors(book, relevant, commands, distractors, rng)
    listing = "\n".join(_shuffled(commands, rng))
    return f"Crafting commands:\n{listing}\n\nGoal: craft {display_name(goal)}."


def relevant_recipes(book: RecipeBook, goal: str) -> tuple[Recipe, ...]:
    """Every recipe that can take part in a way to the goal, goal first."""
    found: dict[Recipe, None] = {}
    pending = [goal]
    seen = {goal}
    while pending:
        for recipe in book.recipes_for.get(pending.pop(0), ()):
            found[recipe] = None
            for part in recipe.ingredients:
                for item in book.options(part.name, is_tag=part.is_tag):
                    if item not in seen:
                        seen.add(item)
                        pending.append(item)
    return tuple(found)


def _distractors(
    book: RecipeBook,
    relevant: Sequence[Recipe],
    commands: Sequence[str],
    limit: int,
    rng: random.Random,
) -> list[str]:
    """Commands that use an ingredient of the task without helping towards the goal."""
    names = dict.fromkeys(part.name for recipe in relevant for part in recipe.ingredients)
    pool: dict[str, None] = {}
    for name in names:
        uses = [recipe.command for recipe in book.uses[name]]
        # A cap for each ingredient, or `planks` and `stick` would crowd out all the others.
        pool.update(dict.fromkeys(_shuffled(uses, rng)[:_USES_PER_INGREDIENT]))
    own = set(commands)
    return _shuffled([command for command in pool if command not in own], rng)[:limit]


def _shuffled(rows: Sequence[str], rng: random.Random) -> list[str]:
    # Only random() is promised to give the same sequence in every Python version.
    return [row for _, row in sorted((rng.random(), row) for row in rows)]

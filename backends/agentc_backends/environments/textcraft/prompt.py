"""Writes the opening text of a task: the useful crafting commands, some others, and the goal.

The choice and order of the commands come from a private generator seeded by (goal, seed), so a
prompt is the same in every process. Neighbours: `recipes.py`, `environment.py`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from agentc_backends.environments.textcraft.recipe_files import Recipe, display_name
from agentc_backends.environments.textcraft.recipes import RecipeBook

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

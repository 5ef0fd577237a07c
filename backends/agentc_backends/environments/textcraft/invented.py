"""Invents recipe books: random recipes whose item names recombine the words of Minecraft's items.

A model without any pretraining can practise on them what a pretrained one brings along (finding
the right command and copying from it), on goals that exist in no split of the real recipes.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from agentc_backends.environments.textcraft.recipes import (
    Ingredient,
    Recipe,
    RecipeBook,
    build_recipe_book,
    display_name,
    load_recipe_book,
)

_T = TypeVar("_T")

# How often a count occurs in Minecraft's own recipes, roughly: few are large.
_INPUT_COUNTS = (1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 6, 6, 7, 8, 8, 9)
_OUTPUT_COUNTS = (1, 1, 1, 1, 1, 2, 3, 4, 4, 6, 8)
_INPUTS = (1, 1, 1, 1, 2, 2, 3)
_NAME_WORDS = (1, 1, 2, 2, 2)
_TWO_LEVELS = 0.6
_RELATED_GOAL = 0.7
_RELATED_INPUT = 0.3


@lru_cache(maxsize=4)
def invented_recipe_book(families: int, seed: int, directory: Path | None = None) -> RecipeBook:
    """A book of `families` invented recipes, each with the recipes around it."""
    real = load_recipe_book(directory)
    words = sorted({word for item in real.items for word in display_name(item).split()})
    names = _Names(random.Random(f"textcraft/invented/{seed}"), words, set(real.items))
    recipes: list[Recipe] = []
    for _ in range(families):
        recipes += _family(names)
    return build_recipe_book(recipes)


class _Names:
    """Draws item names that no real item and no earlier invented item bears."""

    def __init__(self, rng: random.Random, words: Sequence[str], taken: set[str]) -> None:
        self.rng = rng
        self._words = words
        self._taken = taken

    def fresh(self) -> str:
        """One or two random words."""
        while True:
            count = self.choose(_NAME_WORDS)
            name = self._take([self.choose(self._words) for _ in range(count)])
            if name is not None:
                return name

    def related(self, other: str) -> str:
        """A name that mostly shares a word with another, as colours and woods do."""
        words = display_name(other).split()
        while True:
            drawn = list(words)
            if len(drawn) > 1 and self.rng.random() < 0.7:
                drawn[int(self.rng.random() * len(drawn))] = self.choose(self._words)
            elif self.rng.random() < 0.5:
                drawn = [drawn[0], self.choose(self._words)]
            else:
                drawn = [self.choose(self._words) for _ in range(self.choose((1, 2)))]
            name = self._take(drawn)
            if name is not None:
                return name

    def choose(self, options: Sequence[_T]) -> _T:
        # Only random() is promised to give the same sequence in every Python version.
        return options[int(self.rng.random() * len(options))]

    def _take(self, words: Sequence[str]) -> str | None:
        name = "minecraft:" + "_".join(words)
        if name in self._taken or len(set(words)) < len(words):
            return None
        self._taken.add(name)
        return name


def _family(names: _Names) -> list[Recipe]:
    """A goal's recipe, perhaps the recipe of its first input, and others that share an input."""
    rng = names.rng
    base = names.fresh()
    goal = names.related(base) if rng.random() < _RELATED_GOAL else names.fresh()
    inputs = [base]
    for _ in range(names.choose(_INPUTS) - 1):
        inputs.append(names.related(base) if rng.random() < _RELATED_INPUT else names.fresh())
    recipes = [
        Recipe(
            output=goal,
            count=names.choose(_OUTPUT_COUNTS),
            ingredients=tuple(Ingredient(item, names.choose(_INPUT_COUNTS)) for item in inputs),
        )
    ]
    if rng.random() < _TWO_LEVELS:
        raw = Ingredient(names.related(base), names.choose((1, 1, 1, 1, 2, 4)))
        recipes.append(Recipe(base, names.choose((1, 4, 4, 4, 2)), (raw,)))
    for _ in range(1 + int(rng.random() * 2)):
        shared = Ingredient(names.choose(inputs), names.choose(_INPUT_COUNTS))
        others = [
            Ingredient(names.fresh(), names.choose(_INPUT_COUNTS))
            for _ in range(names.choose(_INPUTS) - 1)
        ]
        parts = sorted([shared, *others], key=lambda _: rng.random())
        recipes.append(Recipe(names.related(goal), names.choose(_OUTPUT_COUNTS), tuple(parts)))
    return recipes

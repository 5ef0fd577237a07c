"""The index of recipes that game, prompt and planner share.

Built from `recipe_files.py`. Which recipes are kept depends on nothing but the sorted file
names: recipes that undo a block, and recipes that would close a cycle, are dropped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from agentc_backends.environments.textcraft.recipe_files import (
    Recipe,
    read_recipes,
    shipped_recipes,
)


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
    tags = {part.name for recipe in candidates for part in recipe.ingredients if part.is_tag}
    tags.update(r.tag for r in candidates if r.tag is not None and r.tag != r.output)

    kept = _without_cycles(candidates)
    tag_of = {recipe.output: recipe.tag for recipe in kept if recipe.tag is not None}
    members: dict[str, tuple[str, ...]] = {}
    for recipe in kept:
        for part in recipe.ingredients:
            if part.is_tag and part.name not in members:
                members[part.name] = tuple(
                    sorted(item for item, tag in tag_of.items() if tag == part.name)
                )
    # A tag without a craftable member is an ordinary item that `get` gives (`acacia logs`).
    plain = {tag for tag, found in members.items() if not found}
    kept = [_with_plain_items(recipe, plain) for recipe in kept]
    recipes_for: dict[str, tuple[Recipe, ...]] = {}
    for recipe in kept:
        recipes_for[recipe.output] = (*recipes_for.get(recipe.output, ()), recipe)
    uses: dict[str, tuple[Recipe, ...]] = {}
    for recipe in kept:
        for part in recipe.ingredients:
            uses[part.name] = (*uses.get(part.name, ()), recipe)
    members = {tag: found for tag, found in sorted(members.items()) if found}
    return RecipeBook(
        recipes=tuple(kept),
        recipes_for=recipes_for,
        uses=uses,
        members=members,
        tags=frozenset(tags - plain),
        items=frozenset(items | plain),
        depths=_depths(recipes_for, members),
        digest=hashlib.sha256("\n".join(repr(recipe) for recipe in kept).encode()).hexdigest(),
    )


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

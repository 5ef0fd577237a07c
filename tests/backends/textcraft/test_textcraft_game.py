"""The rules and their exact observations, the planner in the real game, and snapshots."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentc_backends.environments.server.environment import EpisodeError
from agentc_backends.environments.textcraft.environment import TextCraftEnvironment
from agentc_backends.environments.textcraft.game import TextCraftGame
from agentc_backends.environments.textcraft.recipes import RecipeBook
from agentc_backends.environments.textcraft.settings import TextCraftSettings

DIAMOND_BLOCK = "minecraft:diamond_block"
PLANKS = "minecraft:acacia_planks"


def replies(game: TextCraftGame, *actions: str) -> list[str]:
    return [game.step(action).observation for action in actions]


def test_planner_solves_every_goal(book: RecipeBook) -> None:
    environment = TextCraftEnvironment()
    for goal in book.goals:
        environment.reset(goal)
        actions = environment.expert(goal)
        assert len(actions) <= environment.default_max_steps
        results = [environment.step(action) for action in actions]
        assert [result[1] for result in results] == [0.0] * (len(actions) - 1) + [1.0]
        assert [result[2] for result in results] == [False] * (len(actions) - 1) + [True]


def test_planner_shares_batches_and_leftovers() -> None:
    environment = TextCraftEnvironment()
    assert environment.expert("minecraft:wooden_sword") == (
        "get 1 acacia logs",
        "craft 4 acacia planks using 1 acacia logs",
        "craft 4 stick using 2 acacia planks",
        "craft 1 wooden sword using 1 stick, 2 acacia planks",
    )
    assert max(len(environment.expert(goal)) for goal in environment.catalogue.lists.known) == 48


def test_planner_prefers_items_that_are_needed_anyway() -> None:
    # A sign needs oak planks; its stick can come from any planks, so it comes from oak.
    actions = TextCraftEnvironment().expert("minecraft:oak_sign")
    assert all("acacia" not in action for action in actions)


def test_thoughts_name_the_reason() -> None:
    steps = TextCraftEnvironment().expert_steps("minecraft:wooden_sword")
    assert [step.thought for step in steps] == [
        "I need 1 acacia logs to craft acacia planks, so I get 1.",
        "I need 4 acacia planks to craft stick and wooden sword, so I craft acacia planks first.",
        "I need 1 stick to craft wooden sword, so I craft stick first.",
        "I have 1 stick, 2 acacia planks, so I craft the goal, wooden sword.",
    ]


@pytest.mark.parametrize(
    ("action", "observation"),
    [
        ("get 2 planks", "Could not find planks"),
        ("get 1 minecraft:diamond", "Could not find minecraft:diamond"),
        ("get 3 acacia logs", "Got 3 acacia logs"),
        ("get 03 diamond", "Got 3 diamond"),
        ("get 0 diamond", "Got 0 diamond"),
        ("get -1 diamond", "Could not execute get -1 diamond"),
        ("get 9999999999 diamond", "Could not execute get 9999999999 diamond"),
        ("craft 1 planks using 1 oak logs", "Could not find enough items to craft None"),
        ("craft stick using 2 planks", "Could not find enough items to craft minecraft:stick"),
        ("craft 1 stick", "Could not execute craft 1 stick"),
        ("craft 1 stick using ", "Wrong item format: "),
        (" inventory", "Could not execute  inventory"),
    ],
)
def test_observations(book: RecipeBook, action: str, observation: str) -> None:
    assert replies(TextCraftGame(book, DIAMOND_BLOCK), action) == [observation]


def test_get_of_nothing_leaves_nothing(book: RecipeBook) -> None:
    game = TextCraftGame(book, DIAMOND_BLOCK)
    assert replies(game, "get 0 diamond", "inventory")[1] == (
        "Inventory: You are not carrying anything."
    )


def test_tag_ingredient_takes_one_kind_and_recipe_sets_the_count(book: RecipeBook) -> None:
    game = TextCraftGame(book, "minecraft:stick")
    assert replies(
        game,
        "get 1 oak logs",
        "get 1 birch logs",
        "craft 1 oak planks using 1 oak logs",
        "craft 4 birch planks using 1 birch logs",
        "craft 4 stick using 1 oak planks, 1 birch planks",
        "craft 4 stick using 1 oak planks, 1 oak planks",
        "craft 4 stick using 2 birch planks",
        "inventory",
    )[2:] == [
        "Crafted 4 minecraft:oak_planks",
        "Crafted 4 minecraft:birch_planks",
        "Could not find a valid recipe for ItemTagWithCount(item_tag=ItemTag(tag=None, "
        "item_id='minecraft:stick'), count=4)",
        "Could not find a valid recipe for ItemTagWithCount(item_tag=ItemTag(tag=None, "
        "item_id='minecraft:stick'), count=4)",
        "Crafted 4 minecraft:stick",
        "Inventory: [oak planks] (4) [birch planks] (2) [stick] (4) ",
    ]


def test_after_the_goal_the_world_answers_without_reward() -> None:
    environment = TextCraftEnvironment()
    environment.reset(PLANKS)
    actions = environment.expert(PLANKS)
    assert sum(environment.step(action)[1] for action in (*actions, *actions)) == 1.0
    observation, reward, terminated, truncated, _ = environment.step("inventory")
    assert (observation, reward) == ("Inventory: [acacia planks] (8) ", 0.0)
    assert terminated
    assert not truncated


def test_step_needs_a_reset_and_unknown_names_are_refused() -> None:
    environment = TextCraftEnvironment(TextCraftSettings(max_depth=1))
    with pytest.raises(EpisodeError, match="reset"):
        environment.step("inventory")
    with pytest.raises(KeyError, match="no task"):
        environment.reset("minecraft:iron_pickaxe")
    with pytest.raises(KeyError, match="train, validation, test"):
        environment.tasks("dev")


@pytest.mark.parametrize(
    "change",
    [
        {"task_id": "minecraft:nothing"},
        {"version": 2},
        {"environment": "alfworld"},
        {"inventory": [["minecraft:diamond", 0]]},
        {"inventory": [["minecraft:diamond", True]]},
        {"inventory": [["minecraft:unobtainium", 1]]},
        {"inventory": {"minecraft:diamond": 1}},
        {"done": 1},
    ],
)
def test_malformed_snapshot_changes_nothing(change: dict[str, object]) -> None:
    environment = TextCraftEnvironment()
    environment.reset(DIAMOND_BLOCK)
    before = environment.snapshot()
    with pytest.raises(ValueError, match=r"snapshot|inventory"):
        environment.restore({**before, "task_id": PLANKS, **change})
    assert environment.snapshot() == before


WORDS = [
    "craft",
    "get",
    "inventory",
    "using",
    "1",
    "4",
    "9",
    "0",
    ",",
    "diamond",
    "block",
    "planks",
]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(st.lists(st.sampled_from(WORDS)).map(" ".join), st.text()), max_size=8))
def test_any_action_is_answered_and_counts_stay_positive(actions: list[str]) -> None:
    environment = TextCraftEnvironment()
    environment.reset(DIAMOND_BLOCK)
    for action in actions:
        observation, reward, terminated, truncated, _ = environment.step(action)
        assert observation
        assert reward in (0.0, 1.0)
        assert not truncated
        assert terminated or reward == 0.0
    assert all(count > 0 for _, count in environment.snapshot()["inventory"])

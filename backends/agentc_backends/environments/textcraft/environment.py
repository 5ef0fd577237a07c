"""TextCraft as an environment: tasks, prompts, expert and snapshots around its game.

A task is the item to craft (`minecraft:diamond_block`). The environment never truncates: the
episode limit belongs to the rollout, which finds `default_max_steps` here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from agentc_backends.environments.server.world import ExpertAction, TextWorld
from agentc_backends.environments.textcraft.game import TextCraftGame, task_prompt
from agentc_backends.environments.textcraft.invented import invented_recipe_book
from agentc_backends.environments.textcraft.recipes import load_recipe_book
from agentc_backends.environments.textcraft.settings import TextCraftSettings
from agentc_backends.environments.textcraft.tasks import load_tasks

_MAX_COUNT = 10**15


class TextCraftEnvironment(TextWorld):
    """One episode at a time; build it once and reset it for each attempt."""

    name = "textcraft"
    title = "TextCraft"
    default_max_steps = 60
    resets_on_create = True
    seeded = True
    answers_after_end = True

    def __init__(self, settings: TextCraftSettings | None = None) -> None:
        settings = settings or TextCraftSettings()
        directory = settings.recipe_directory
        if settings.recipes == "invented":
            families, seed = settings.invented_families, settings.invented_seed
            book = invented_recipe_book(families, seed, directory)
        else:
            book = load_recipe_book(directory)
        # Shared between environments: a server opens one environment for each session.
        self.catalogue = load_tasks(book, settings)
        super().__init__(self.catalogue.lists, settings)
        self._game: TextCraftGame | None = None

    def numbered_tasks(self) -> Sequence[str]:
        """All goals in sorted order, whatever the options leave out."""
        return self.catalogue.book.goals

    def begin(self, task_id: str, seed: int) -> str:
        """Seed 0 is the canonical prompt, others vary distractors and order."""
        self._game = self._new_game(task_id, {}, done=False)
        distractors = self.catalogue.settings.distractors
        return task_prompt(self.catalogue.book, task_id, seed=seed, distractors=distractors)

    def act(self, action: str) -> tuple[str, float, bool]:
        outcome = self._episode().step(action)
        return outcome.observation, outcome.reward, outcome.done

    def info(self) -> dict[str, Any]:
        goal = self._episode().goal
        return {"goal": goal, "depth": self.catalogue.book.depths[goal]}

    def expert(self, task_id: str, *, seed: int = 0) -> tuple[str, ...]:
        """Actions that solve the task; they are the same for every seed."""
        return tuple(step.action for step in self.expert_steps(task_id, seed=seed))

    def expert_steps(self, task_id: str, *, seed: int = 0) -> tuple[ExpertAction, ...]:
        """The expert's actions, each with a short thought."""
        del seed  # The prompt never changes which recipes are valid.
        return self.catalogue.plan(self.require_task(task_id))

    def save(self) -> dict[str, Any]:
        # Pairs, for the order is part of the state: observations show it.
        inventory = self._episode().inventory
        return {"inventory": [[item, count] for item, count in inventory.items()]}

    def load(self, task_id: str, state: Mapping[str, Any]) -> None:
        match state:
            case {"inventory": list(rows), "done": bool(done)}:
                inventory = dict(self._inventory_row(row) for row in rows)
            case _:
                raise self.malformed()
        self._game = self._new_game(task_id, inventory, done=done)

    def identity(self) -> dict[str, Any]:
        """Everything that decides tasks, prompts and replies, as JSON values."""
        goals = "\n".join(f"{split} {g}" for split in self.splits for g in self.tasks(split))
        return {
            **super().identity(),
            "recipes_sha256": self.catalogue.book.digest,
            "tasks_sha256": hashlib.sha256(goals.encode()).hexdigest(),
        }

    def _new_game(self, goal: str, inventory: Mapping[str, int], *, done: bool) -> TextCraftGame:
        return TextCraftGame(
            self.catalogue.book,
            goal,
            inventory=inventory,
            done=done,
            end_on_refusal=self.catalogue.settings.end_on_refusal,
        )

    def _inventory_row(self, row: object) -> tuple[str, int]:
        match row:
            case [str(item), int(count)] if item in self.catalogue.book.items:
                if not isinstance(count, bool) and 0 < count <= _MAX_COUNT:
                    return item, count
        raise ValueError("an inventory row is an item with a positive count")

    def _episode(self) -> TextCraftGame:
        self.episode_task()
        assert self._game is not None
        return self._game

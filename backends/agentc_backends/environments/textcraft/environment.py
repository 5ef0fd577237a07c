"""TextCraft as an environment: gymnasium's reset and step, plus tasks, expert and snapshots.

A task is the item to craft (`minecraft:diamond_block`). The environment never truncates: the
episode limit belongs to the rollout, which finds `default_max_steps` here. Sessions of an
`environments.server` each own one of these.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from agentc_backends.environments.server.environment import MemoryEnvironment
from agentc_backends.environments.server.settings import rules_of
from agentc_backends.environments.textcraft.game import TextCraftGame, task_prompt
from agentc_backends.environments.textcraft.invented import invented_recipe_book
from agentc_backends.environments.textcraft.recipes import load_recipe_book
from agentc_backends.environments.textcraft.settings import TextCraftSettings
from agentc_backends.environments.textcraft.tasks import SPLITS, PlanStep, load_tasks

_MAX_COUNT = 10**15


class TextCraftEnvironment(MemoryEnvironment):
    """One episode at a time; build it once and reset it for each attempt."""

    name: ClassVar[str] = "textcraft"
    title: ClassVar[str] = "TextCraft"
    version: ClassVar[str] = "1"
    default_max_steps: ClassVar[int] = 60
    splits: ClassVar[tuple[str, ...]] = SPLITS
    capabilities: ClassVar[frozenset[str]] = frozenset({"expert", "fork", "snapshot", "seed"})
    resets_on_create: ClassVar[bool] = True

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
        self._game: TextCraftGame | None = None
        self._seed = 0

    def tasks(self, split: str) -> tuple[str, ...]:
        """The task ids of a split, sorted."""
        if split not in self.catalogue.splits:
            raise KeyError(f"TextCraft has no split {split!r}; it has {', '.join(SPLITS)}")
        return self.catalogue.splits[split]

    def has_task(self, task_id: str) -> bool:
        return task_id in self.catalogue.kept

    def numbered_tasks(self) -> Sequence[str]:
        """All goals in sorted order, whatever the options leave out."""
        return self.catalogue.book.goals

    def reset(self, task_id: str, *, seed: int = 0) -> tuple[str, dict[str, Any]]:
        """Start a task; seed 0 is its canonical prompt, others vary distractors and order."""
        observation = self._prompt(task_id, seed)
        self._game = self._new_game(task_id, {}, done=False)
        self._seed = seed
        return observation, self._info()

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Carry out one action: observation, reward, terminated, truncated (never), info."""
        outcome = self._episode().step(action)
        return outcome.observation, outcome.reward, outcome.done, False, self._info()

    def expert(self, task_id: str, *, seed: int = 0) -> tuple[str, ...]:
        """Actions that solve the task; they are the same for every seed."""
        return tuple(step.action for step in self.expert_steps(task_id, seed=seed))

    def expert_steps(self, task_id: str, *, seed: int = 0) -> tuple[PlanStep, ...]:
        """The expert's actions, each with a short thought."""
        del seed  # The prompt never changes which recipes are valid.
        return self.catalogue.plan(self._checked(task_id))

    def snapshot(self) -> dict[str, Any]:
        """The whole episode as JSON values."""
        game = self._episode()
        return {
            "environment": self.name,
            "version": 1,
            "task_id": game.goal,
            "seed": self._seed,
            # Pairs, for the order is part of the state: observations show it.
            "inventory": [[item, count] for item, count in game.inventory.items()],
            "done": game.done,
        }

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Continue from a snapshot; a malformed one raises ValueError and changes nothing."""
        match snapshot:
            case {
                "environment": self.name,
                "version": 1,
                "task_id": str(task_id),
                "seed": int(seed),
                "inventory": list(rows),
                "done": bool(done),
            } if task_id in self.catalogue.kept:
                inventory = dict(self._inventory_row(row) for row in rows)
            case _:
                raise ValueError("not a snapshot of a TextCraft episode with these options")
        self._game = self._new_game(task_id, inventory, done=done)
        self._seed = seed

    def identity(self) -> dict[str, Any]:
        """Everything that decides tasks, prompts and replies, as JSON values."""
        goals = "\n".join(f"{split} {g}" for split in SPLITS for g in self.tasks(split))
        return {
            "name": self.name,
            "version": self.version,
            "options": rules_of(self.catalogue.settings),
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

    def _prompt(self, task_id: str, seed: int) -> str:
        distractors = self.catalogue.settings.distractors
        goal = self._checked(task_id)
        return task_prompt(self.catalogue.book, goal, seed=seed, distractors=distractors)

    def _checked(self, task_id: str) -> str:
        if task_id not in self.catalogue.kept:
            raise KeyError(f"TextCraft has no task {task_id!r} with these options")
        return task_id

    def _inventory_row(self, row: object) -> tuple[str, int]:
        match row:
            case [str(item), int(count)] if item in self.catalogue.book.items:
                if not isinstance(count, bool) and 0 < count <= _MAX_COUNT:
                    return item, count
        raise ValueError("an inventory row is an item with a positive count")

    def _episode(self) -> TextCraftGame:
        if self._game is None:
            raise RuntimeError("reset the environment before stepping it")
        return self._game

    def _info(self) -> dict[str, Any]:
        goal = self._episode().goal
        return {"goal": goal, "depth": self.catalogue.book.depths[goal]}

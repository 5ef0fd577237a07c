"""The tasks that a choice of settings leaves: goals by split, and their expert plans.

Shared by every environment with the same settings (`environment.py`); built from `recipes.py`,
`splits.py` and `planner.py`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from agentc_backends.environments.textcraft.planner import PlanStep, plan
from agentc_backends.environments.textcraft.recipes import RecipeBook
from agentc_backends.environments.textcraft.settings import ExpertStyle, TextCraftSettings
from agentc_backends.environments.textcraft.splits import split_goals


class TextCraftTasks:
    """The goals that the settings leave, their splits and, made when asked for, their plans."""

    def __init__(self, book: RecipeBook, settings: TextCraftSettings) -> None:
        self.book = book
        self.settings = settings
        self._plans: dict[str, tuple[PlanStep, ...]] = {}
        self.splits = {
            split: tuple(goal for goal in goals if self._is_kept(goal))
            for split, goals in split_goals(book).items()
        }
        self.kept = frozenset(goal for goals in self.splits.values() for goal in goals)
        if not self.kept:
            raise ValueError(f"no TextCraft task is left by {settings}")

    def plan(self, goal: str) -> tuple[PlanStep, ...]:
        if goal not in self._plans:
            self._plans[goal] = _styled(plan(self.book, goal), self.settings.expert_style)
        return self._plans[goal]

    def _is_kept(self, goal: str) -> bool:
        max_depth, max_steps = self.settings.max_depth, self.settings.max_expert_steps
        return (max_depth is None or self.book.depths[goal] <= max_depth) and (
            max_steps is None or len(self.plan(goal)) <= max_steps
        )


@lru_cache(maxsize=16)
def load_tasks(book: RecipeBook, settings: TextCraftSettings) -> TextCraftTasks:
    """The tasks of a book under these settings, computed once."""
    return TextCraftTasks(book, settings)


def _styled(steps: tuple[PlanStep, ...], style: ExpertStyle) -> tuple[PlanStep, ...]:
    """`recipe_first` recalls every recipe of the plan in its first thought, goal first, and then
    acts without thinking; its craft actions leave out the output's count, which the game ignores.
    What it writes is then a copy, left to right, of something that already stands in the text.
    """
    if style == "stepwise":
        return steps
    actions = [_without_output_count(step.action) for step in steps]
    recipes = [action[len("craft ") :] for action in reversed(actions) if action[:6] == "craft "]
    thought = "; ".join(dict.fromkeys(recipes))
    return tuple(
        replace(step, action=action, thought="" if number else thought)
        for number, (step, action) in enumerate(zip(steps, actions, strict=True))
    )


def _without_output_count(action: str) -> str:
    words = action.split(" ")
    return " ".join([words[0], *words[2:]]) if words[0] == "craft" else action

"""TextCraft's settings: what a spec may write, and what the server receives."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from agentc.program.settings import only_with, setting

ExpertStyle: TypeAlias = Literal["stepwise", "recipe_first"]


# fmt: off
_OF_INVENTED = only_with(
    "recipes", "invented", because="`recipes: minecraft` invents nothing")


@dataclass(frozen=True, slots=True, kw_only=True)
class TextCraftSettings:
    max_depth: int | None = setting(
        "Leave out goals of a greater crafting depth; null: keep all.", None, minimum=1)
    max_expert_steps: int | None = setting(
        "Leave out goals whose expert needs more actions; null: keep all.", None, minimum=1)
    distractors: int = setting("Commands of no use among those that a task lists.", 10, minimum=0)
    expert_style: ExpertStyle = setting(
        "How the expert words its plan: a thought for each step, or all recipes recalled in the "
        "first thought and craft actions without the output's count.", "stepwise")
    end_on_refusal: bool = setting(
        "End an episode at the first action that the game refuses; as released, the agent may "
        "continue.", False)
    # What is invented shows in digests.
    recipes: Literal["minecraft", "invented"] = setting(
        "Minecraft's recipes, or invented ones to practise on: random recipes whose names "
        "recombine the words of Minecraft's items.", "minecraft", rule=False)
    invented_families: int = setting(
        "How many goals to invent, each with recipes around it.", 1000, minimum=1, maximum=20000,
        rule=False, only_if=_OF_INVENTED)
    invented_seed: int = setting("Seed of the invented recipes.", 0, seed=True, rule=False,
        only_if=_OF_INVENTED)
    recipe_directory: Path | None = setting("Default: the bundled ones.", None, in_spec=False)

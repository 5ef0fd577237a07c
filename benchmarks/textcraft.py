"""TextCraft's speed beside AgentGym's: `AGENTC_AGENTGYM=CHECKOUT python -m benchmarks.textcraft`.

CHECKOUT is one of WooooDyy/AgentGym. Both play our expert's plans for the same goals in one
process, in turns; the server is ours behind HTTP with one client. Goals whose recipes AgentGym's
reading has dropped (it depends on the order of the file system's list) are left out, and counted.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

from agentc_backends.environments.textcraft.environment import TextCraftEnvironment
from benchmarks.served import call, started
from benchmarks.side_by_side import Player, Walk, print_table


def released_environment(checkout: Path) -> tuple[Any, dict[str, int]]:
    """AgentGym's environment, and the number that it gives to each goal."""
    folder = checkout / "agentenv-textcraft"
    # Its __init__ starts a web framework, which playing in process does not need.
    package = ModuleType("agentenv_textcraft")
    package.__path__ = [str(folder / "agentenv_textcraft")]
    sys.modules["agentenv_textcraft"] = package
    tree = importlib.import_module("agentenv_textcraft.crafting_tree").CraftingTree(
        minecraft_dir=str(folder / "agentenv_textcraft")
    )
    environment = importlib.import_module("agentenv_textcraft.environment").TextCraftEnv(
        crafting_tree=tree, commands=None, goal=None
    )
    depths = sorted(tree.item_recipes_min_depth(1), key=lambda each: each[1])
    return environment, {goal: number for number, (goal, _) in enumerate(depths)}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.textcraft", description=__doc__)
    parser.add_argument("--episodes", type=int, default=100, help="of each turn")
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args(arguments)
    checkout = os.environ.get("AGENTC_AGENTGYM")
    if not checkout:
        parser.error("set AGENTC_AGENTGYM (a checkout of WooooDyy/AgentGym)")
    released, numbers = released_environment(Path(checkout))
    ours = TextCraftEnvironment()
    goals = Random(0).sample(sorted(ours.catalogue.lists.known), options.episodes)
    plans: list[Walk] = [(goal, ours.expert(goal)) for goal in goals]
    walks = [walk for walk in plans if _solves(released, numbers.get(walk[0]), walk[1])]
    if left_out := len(goals) - len(walks):
        print(f"{left_out} of {len(goals)} goals left out: no recipe in AgentGym's reading")
    with started("textcraft") as server:
        client = server.client()
        session = call(client, "/create")["id"]
        players: dict[str, Player] = {
            "AgentGym's, in process": (
                lambda goal: released.reset(data_idx=numbers[goal]),
                released.step,
            ),
            "ours, in process": (ours.reset, ours.step),
            "ours, server with one client": (
                lambda goal: call(client, "/reset", id=session, task_id=goal),
                lambda action: call(client, "/step", id=session, action=action),
            ),
        }
        print_table(players, walks, options.turns)
    return 0


def _solves(released: Any, number: int | None, plan: Sequence[str]) -> bool:
    if number is None:
        return False
    released.reset(data_idx=number)
    return any(released.step(action)[2] for action in plan)


if __name__ == "__main__":
    sys.exit(main())

"""ScienceWorld's settings: what a spec may write, and what the server is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agentc_backends.environments.sciworld.splits import DEFAULT
from agentc_backends.environments.server.settings import rules_of, setting

SIMPLIFICATIONS = (
    "easy",
    "teleportAction",
    "openDoors",
    "openContainers",
    "selfWateringFlowerPots",
    "noElectricalAction",
)


# fmt: off
@dataclass(frozen=True, slots=True, kw_only=True)
class SciworldSettings:
    simplifications: tuple[str, ...] = setting(
        f"ScienceWorld's simplifications: {', '.join(SIMPLIFICATIONS[1:])}; `easy` alone is all of "
        "them but openContainers (and, in electrical tasks, noElectricalAction). ETO plays with "
        "easy, AgentGym without any.", ("easy",))
    # What a server is told are variations, however they are written.
    splits: Mapping[str, Any] = setting(
        "Variations of each split: `{own: train}` (the simulator's own), `{list: eto}` or `{list: "
        "agent_r}` (published lists), `{file: path, format: eto}` ([task, variation] pairs; "
        "`agentgym` and `agentgym_without_2_3`: indices) or `{variations: {boil: 0-13}}`, each "
        "with `except: [other split]`. Splits that share a variation are refused.", DEFAULT,
        rule=False)
    tasks: tuple[str, ...] = setting(
        "Keep only these tasks, by name or number (`boil`, `4-2`); empty: all.", (), served=False,
        rule=False)
    step_limit: Literal["per_task", "uniform", "none"] = setting(
        "Actions until an episode ends: ETO's for each task (10 to 120), 100 for all, or none "
        "(gold paths may take more).", "per_task")
    score: Literal["best", "last"] = setting(
        "An episode's reward: the best score reached, as ETO has it, or the last.", "best")
    negative: Literal["keep", "zero"] = setting(
        "Reward of a fatal mistake (focusing on the wrong thing), which ends the episode: -1, or "
        "0.", "keep")
    opening: Literal["task", "task_and_room"] = setting(
        "First observation: the task alone, or with what the agent sees.", "task_and_room")
    snap_actions: bool = setting(
        "Take an action that is not legal as the legal one that shares most words with it.", False)
    expert_thoughts: Literal["plain", "none"] = setting(
        "Thoughts of the simulator's own agent, which has none: a plain sentence made of each "
        "action, or none.", "plain")
    processes: int | None = setting(
        "JVMs at a time; null: one for each core.", None, minimum=1, identity="placement")
    heap_mb: int = setting("Memory of each JVM.", 512, minimum=128, identity="placement")
    loads_each: int = setting("Episodes until a JVM is replaced.", 400, in_spec=False)

    @property
    def simplified(self) -> str:
        """As the simulator takes them."""
        return ",".join(self.simplifications)

    def rules(self) -> dict[str, Any]:
        """What the identity says of them."""
        return {**rules_of(self), "simplifications": self.simplified}

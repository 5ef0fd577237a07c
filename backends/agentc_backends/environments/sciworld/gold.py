"""Gold paths: the actions of the simulator's own agent, found once for each task and kept.

One takes the simulator about a second, so the first job that asks for a split pays for it.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from agentc_backends.environments.sciworld.pool import JvmPool
from agentc_backends.environments.sciworld.tasks import Task, task_id


@dataclass(frozen=True, slots=True)
class GoldStep:
    """One action; the thought is a plain sentence made of it, or empty."""

    action: str
    thought: str


class GoldPaths:
    """Gold paths by task id; any thread may ask."""

    def __init__(self, pool: JvmPool, simplifications: str, *, thoughts: bool) -> None:
        self._pool = pool
        self._simplifications = simplifications
        self._thoughts = thoughts
        self._known: dict[str, tuple[GoldStep, ...]] = {}
        self._lock = threading.Lock()

    def path(self, task: Task, variation: int) -> tuple[GoldStep, ...]:
        """Raises EnvironmentFailure."""
        key = task_id(task.name, variation)
        with self._lock:
            known = self._known.get(key)
        if known is None:
            simulation = self._pool.acquire()
            try:
                actions = simulation.gold_path(task.name, variation, self._simplifications)
            finally:
                self._pool.release(simulation)
            known = tuple(GoldStep(a, _thought(a) if self._thoughts else "") for a in actions)
            with self._lock:
                self._known[key] = known
        return known


def _thought(action: str) -> str:
    return "I need to wait." if action.startswith("wait") else f"I need to {action}."

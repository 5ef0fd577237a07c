"""Serves ColBench's programming tasks until SIGTERM, as `python -m` of this module."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial

from agentc.runtime.sandbox.boxes import NoInterpreterError
from agentc.runtime.sandbox.probe import NoBoxError
from agentc.runtime.sandbox.process import BoxError
from agentc_backends.environments.code_tests.canaries import BrokenBoxError
from agentc_backends.environments.colbench.dialogue import checked_text, served_splits
from agentc_backends.environments.colbench.environment import ColBenchEnvironment, ColBenchShared
from agentc_backends.environments.colbench.humans import Human, ModelHuman, ScriptedHuman
from agentc_backends.environments.colbench.invented import InventedTask, invent
from agentc_backends.environments.colbench.judging import CeilingError, open_judge
from agentc_backends.environments.colbench.settings import PROMPT, ColBenchSettings
from agentc_backends.environments.colbench.tasks import CodeTask, digest, read_tasks
from agentc_backends.environments.server.model_services import ModelService
from agentc_backends.environments.server.program import Opener, program

_REFUSALS = (OSError, NoBoxError, BoxError, BrokenBoxError, CeilingError)


def open_world(settings: ColBenchSettings) -> Opener:
    """Raises ValueError and what `_REFUSALS` names: nobody is judged in a box that does not hold,
    or by references that fail their own tests."""
    invented = invent(settings) if settings.is_invented else {}
    splits = _splits(settings, invented)
    tasks = [task for each in splits.values() for task in each]
    try:
        judge = open_judge(settings, tasks)
    except NoInterpreterError as error:
        raise ValueError(f"{error}; {error.remedy}") from error
    judge.check_ceiling(tasks)
    world = ColBenchShared(settings, splits, invented, judge, _human(settings))
    return partial(ColBenchEnvironment, world)


def _human(settings: ColBenchSettings) -> Human:
    if settings.human == "scripted":
        return ScriptedHuman()
    return ModelHuman(
        ModelService("simulator"),
        temperature=settings.human_temperature,
        max_tokens=settings.human_max_tokens,
        prompt=checked_text(settings.human_prompt, settings.human_prompt_sha256, PROMPT),
        system=settings.human_system,
        dialogue=settings.human_dialogue,
        seeded=settings.human_seeding == "text",
    )


def _splits(
    settings: ColBenchSettings, invented: Mapping[str, InventedTask]
) -> dict[str, tuple[CodeTask, ...]]:
    own: Sequence[CodeTask] | None = None
    if settings.is_invented:
        own = tuple(each.task for each in invented.values())
    return served_splits(settings, own, read_tasks, digest)


opener, main = program(ColBenchSettings, open_world, refusals=_REFUSALS)

if __name__ == "__main__":
    sys.exit(main())

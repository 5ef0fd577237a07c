"""Invented tasks by (seed, index), and their expert's dialogues: what families have in common.

A family is a function from a stream and an index to a task that has been drawn (`slots.py`,
`house_prices.py`); FAMILIES has them by the word of the setting `family`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from random import Random

from agentc_backends.environments.colbench import house_prices, slots
from agentc_backends.environments.colbench.settings import ColBenchSettings
from agentc_backends.environments.colbench.tasks import CodeTask, task_id

Dialogue = Callable[[Random, int, float, float], tuple[list[str], str]]
"""From a source of chance, the most questions, and the settings `careless` and `wander`: an
expert's questions, and the source of its answer."""


@dataclass(frozen=True, slots=True)
class InventedTask:
    """A task, and how its expert goes about it."""

    task: CodeTask
    dialogue: Dialogue


def invent(settings: ColBenchSettings) -> dict[str, InventedTask]:
    """As many different tasks as are asked for, by id, in the order of their numbers."""
    made: dict[str, InventedTask] = {}
    for each in _stream(settings):
        made.setdefault(each.task.id, each)
        if len(made) == settings.invented_tasks:
            break
    return made


def _stream(settings: ColBenchSettings) -> Iterator[InventedTask]:
    draw, stream, index = FAMILIES[settings.family], str(settings.invented_seed), 0
    while True:
        yield draw(stream, index, settings)
        index += 1


def _slots(stream: str, index: int, settings: ColBenchSettings) -> InventedTask:
    del settings
    drawn = slots.draw(stream, index)
    return InventedTask(drawn.task(), drawn.dialogue)


def _prices(stream: str, index: int, settings: ColBenchSettings) -> InventedTask:
    drawn = house_prices.task(stream, index, settings.custom)
    task = CodeTask(
        id=task_id(drawn.description, drawn.reference),
        description=drawn.description,
        reference=drawn.reference,
        calls=tuple(f'{drawn.function}("{kind}", {n})' for kind, n in drawn.calls),
        facts=drawn.facts,
    )

    def dialogue(
        chance: Random, questions: int, careless: float, wander: float
    ) -> tuple[list[str], str]:
        if careless or wander:
            asked = house_prices.expert(
                drawn, chance, questions=questions, stop=careless, repeat=wander
            )
        else:
            asked = [house_prices.question(kind) for kind in drawn.prices][:questions]
        known = {house_prices.question(kind): kind for kind in drawn.prices}
        told = dict.fromkeys(known[each] for each in asked if each in known)
        return asked, house_prices.source(
            drawn.function, {kind: drawn.prices[kind] for kind in told}
        )

    return InventedTask(task, dialogue)


FAMILIES: Mapping[str, Callable[[str, int, ColBenchSettings], InventedTask]] = {
    "slots": _slots,
    "prices": _prices,
}

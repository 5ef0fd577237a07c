"""Invented tasks by (seed, index), and their expert's dialogues.

A family is a function from a stream and an index to a task: tasks with hidden slots here, priced
tasks in `house_prices.py`; FAMILIES has them by the word of the setting `family`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from agentc_backends.environments.colbench import house_prices
from agentc_backends.environments.colbench.settings import ColBenchSettings
from agentc_backends.environments.colbench.tasks import CodeTask, HumanFact, task_id

# Tasks with hidden numbers: a function has four slots, named numbers of two digits; the description
# gives some, the human tells the others one by one. Ten calls are chosen so that every slot decides
# some of them: an agent that asks for all slots can pass all tests.

USELESS = ("currency", "author", "deadline", "colour")
"""What no task has: asking for it wastes a turn."""
_VALUES = range(10, 100)
_HIDDEN = (2, 3)
_TABLE = ("aaabbccdef", (1, 2, 5, 1, 3, 1, 4, 1, 2, 6))


@dataclass(frozen=True, slots=True)
class _Shape:
    """A function's text, and the arguments of its ten calls; slots are 0 to 3 here."""

    body: str
    arguments: Callable[[Sequence[int]], Sequence[object]]


_SHAPES = {
    # Slots 1 and 3 decide four calls each; slots 0 and 2 one, and more where a guess is far off.
    "bands": _Shape(
        "if n < {0}: return {1}\n  if n > {2}: return {3}\n  return n",
        lambda v: (0, 3, v[0] // 2, v[0] - 1, v[0], v[2], v[2] + 1, v[2] + 9, 150, 200),
    ),
    # Slot 1 decides five, slot 2 four, slot 3 five, slot 0 two at least.
    "tiers": _Shape(
        "if n > {0}: return n * {1}\n  return n * {2} + {3}",
        lambda v: (0, 1, 2, 5, v[0], v[0] + 1, v[0] + 2, 100, 120, 150),
    ),
    # Every slot decides two or three.
    "table": _Shape(
        "return dict(a={0}, b={1}, c={2}).get(k, {3}) * n",
        lambda v: tuple(
            f'"{kind}", {n}' for kind, n in zip(*_TABLE, strict=True)
        ),
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Family:
    name: str
    purpose: str
    shape: str
    slots: tuple[str, str, str, str]

    @property
    def head(self) -> str:
        return f"{self.name}(k, n)" if self.shape == "table" else f"{self.name}(n)"

    def code(self, values: Mapping[str, int]) -> str:
        lines = "".join(f"  {slot} = {values[slot]}\n" for slot in self.slots)
        return f"def {self.head}:\n{lines}  {_SHAPES[self.shape].body.format(*self.slots)}"

    def calls(self, values: Mapping[str, int]) -> tuple[str, ...]:
        numbers = [values[slot] for slot in self.slots]
        return tuple(f"{self.name}({each})" for each in _SHAPES[self.shape].arguments(numbers))

    def draw(self, chance: Random) -> dict[str, int]:
        """Different numbers; of bands, the lower limit lies below the upper one."""
        values = chance.sample(_VALUES, len(self.slots))
        if self.shape == "bands" and values[0] > values[2]:
            values[0], values[2] = values[2], values[0]
        return dict(zip(self.slots, values, strict=True))


SLOT_FAMILIES = (
    _Family("fare", "the price of a bus ride", "tiers", ("border", "express", "local", "entry")),
    _Family("wage", "the pay for hours of work", "tiers", ("overtime", "extra", "hourly", "bonus")),
    _Family("water", "a bill for water", "tiers", ("quota", "excess", "basic", "rent")),
    _Family("parcel", "the cost of a parcel", "tiers", ("heavy", "freight", "gram", "stamp")),
    _Family("heating", "the setting of a heater", "bands", ("cold", "warmup", "hot", "cooldown")),
    _Family("clamp", "a reading in its range", "bands", ("lowest", "under", "highest", "over")),
    _Family("grade", "a mark after rounding", "bands", ("fail", "zero", "top", "full")),
    _Family("pump", "the speed of a pump", "bands", ("empty", "slow", "brim", "fast")),
    _Family("tickets", "the price of seats", "table", ("balcony", "stalls", "box", "standing")),
    _Family("paint", "the paint for walls", "table", ("brick", "wood", "metal", "other")),
    _Family("menu", "the bill of a table", "table", ("soup", "fish", "cake", "drink")),
    _Family("points", "the points of a game", "table", ("gold", "silver", "bronze", "rest")),
)


@dataclass(frozen=True, slots=True)
class SlotTask:
    """A draw: the values of a family's slots, and which of them the description hides."""

    family: _Family
    values: Mapping[str, int]
    hidden: tuple[str, ...]

    def task(self) -> CodeTask:
        shown = [slot for slot in self.family.slots if slot not in self.hidden]
        given = "".join(f" {self._fact_sentence(slot)}" for slot in shown)
        description = f"Write {self.family.head}: {self.family.purpose}.{given}"
        reference = self.family.code(self.values)
        return CodeTask(
            id=task_id(description, reference),
            description=description,
            reference=reference,
            calls=self.family.calls(self.values),
            facts=tuple(
                HumanFact((slot,), self._fact_sentence(slot)) for slot in self.family.slots
            ),
        )

    def dialogue(
        self, chance: Random, questions: int, careless: float, wander: float
    ) -> tuple[list[str], str]:
        """An expert's questions, and its answer with what it was told: it leaves a hidden slot out
        with the probability `careless`, and then guesses it."""
        plan = [
            s for s in chance.sample(self.hidden, len(self.hidden)) if chance.random() >= careless
        ]
        asked: list[str] = []
        while len(asked) < questions:
            if chance.random() < wander:
                asked.append(chance.choice(USELESS))
            elif plan:
                asked.append(plan.pop())
            else:
                break
        guess = self.family.draw(chance)
        known = {
            slot: guess[slot] if slot in self.hidden and slot not in asked else value
            for slot, value in self.values.items()
        }
        return [f"What is {slot}?" for slot in asked], self.family.code(known)

    def _fact_sentence(self, slot: str) -> str:
        # A space before the name, as in the code: what is copied is the same tokens.
        return f"The {slot} = {self.values[slot]}."


def draw_slots(stream: str, index: int) -> SlotTask:
    """Task `index` of a stream."""
    chance = Random(f"task {stream}/{index}")
    family = chance.choice(SLOT_FAMILIES)
    hidden = chance.sample(family.slots, chance.choice(_HIDDEN))
    return SlotTask(family, family.draw(chance), tuple(hidden))


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
    drawn = draw_slots(stream, index)
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

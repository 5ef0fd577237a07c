"""Invented tasks in which only the reference tells a good question from a bad one.

A function prices six kinds of things, and one of them has a price of its own. Every kind is as
plausible as the others, and the human says "No" for five of them, so that a question is worth what
the reference says. Each place has a custom, the kind that it prices in most of its tasks; no text
tells it, so an agent can only learn it. Why it is so: `notes/sweet_rl.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from agentc_backends.environments.colbench.tasks import HumanFact

# Function, six kinds, three places.
_FAMILIES = (
    ("fare", "child student senior group dog bike", "ferry tram railway"),
    ("toll", "car van truck coach trailer scooter", "bridge tunnel canal"),
    ("rent", "tent boat kayak ski board helmet", "lake beach resort"),
    ("entry", "guide tour locker audio photo map", "museum castle zoo"),
    ("bill", "soup salad steak fish cake wine", "canteen tavern hotel"),
    ("wash", "shirt coat dress towel carpet curtain", "laundry hospital gym"),
    ("copies", "poster flyer card banner label book", "school office press"),
    ("post", "letter parcel crate tube roll pallet", "port village airport"),
    ("repair", "chain brake pedal wheel saddle light", "garage club fair"),
    ("care", "hedge lawn pond fence path tree", "villa park farm"),
    ("paint", "wall door roof floor window gate", "church barn mill"),
    ("lesson", "piano violin flute drum guitar voice", "academy studio choir"),
)
KINDS = 6
CALLS = 10
_CALLS_PRICED = 8
_VALUES = range(10, 100)


@dataclass(frozen=True, slots=True)
class PricedTask:
    """One task. `prices` holds its hidden slot, by kind; `calls` are the arguments of the tests."""

    description: str
    function: str
    place: str
    kinds: tuple[str, ...]
    prices: Mapping[str, int]
    facts: tuple[HumanFact, ...]
    reference: str
    calls: tuple[tuple[str, int], ...]


def task(seed: str, index: int, custom: float = 0.8) -> PricedTask:
    """Task `index` of a stream. `custom` is the share of tasks that price their place's
    usual kind; the others price a drawn one."""
    rng = Random(f"house_prices/{seed}/{index}")
    function, words, places = _FAMILIES[rng.randrange(len(_FAMILIES))]
    place = rng.choice(places.split())
    kinds = words.split()
    priced = usual(place, kinds) if rng.random() < custom else rng.choice(kinds)
    rng.shuffle(kinds)
    prices = {priced: rng.choice(_VALUES)}
    listed = ", ".join(f'"{kind}"' for kind in kinds)
    others = [kind for kind in kinds if kind != priced]
    calls = [(priced, n) for n in rng.sample(range(1, 10), _CALLS_PRICED)]
    calls += [(rng.choice(others), rng.randrange(1, 10)) for _ in range(CALLS - _CALLS_PRICED)]
    return PricedTask(
        description=f"Write {function}(kind, n) for a {place}. One kind has a price, the others "
        f"cost 1: {listed}.",
        function=function,
        place=place,
        kinds=tuple(kinds),
        prices=prices,
        facts=tuple(HumanFact((kind,), _sentence(kind, prices.get(kind))) for kind in kinds),
        reference=source(function, prices),
        calls=tuple(calls),
    )


def usual(place: str, kinds: list[str]) -> str:
    """The kind that a place prices as a rule, fixed for all streams and seeds."""
    return sorted(kinds)[Random(f"house_prices/custom/{place}").randrange(len(kinds))]


def source(function: str, prices: Mapping[str, int]) -> str:
    """The function's Python source with these prices; the reference, or an answer."""
    table = ", ".join(f'"{kind}": {price}' for kind, price in prices.items())
    return f"def {function}(kind, n):\n    return n * {{{table}}}.get(kind, 1)"


def question(kind: str) -> str:
    """The expert's question about one kind."""
    return f'Is "{kind}" priced?'


def expert(
    chosen: PricedTask, rng: Random, *, questions: int, stop: float = 0.1, repeat: float = 0.1
) -> list[str]:
    """An expert's questions in order, without its answer: careless, since it asks for kinds in any
    order and knows no custom. It stops when it has been told the price, after `questions`, or
    before each of them with probability `stop`; with `repeat` it asks what it was told."""
    asked: list[str] = []
    left = rng.sample(chosen.kinds, KINDS)
    while len(asked) < questions and not set(chosen.prices) <= set(asked):
        if rng.random() < stop:
            break
        again = asked and rng.random() < repeat
        asked.append(rng.choice(asked) if again else left.pop())
    return [question(kind) for kind in asked]


def _sentence(kind: str, price: int | None) -> str:
    return f'No, not "{kind}".' if price is None else f'Yes, {{"{kind}": {price}}}.'

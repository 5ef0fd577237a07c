"""Goals of a catalogue: what to buy, in which options, and below which price.

The list's order is the released one (shuffled by seed 233), so a goal's number here is its number
in published lists. Prices and price limits are drawn from a seed; as released they differ from
one process to the next, and with them texts and rewards.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product as combinations
from random import Random

from agentc_backends.environments.webshop.products import Instruction, Product

NO_LIMIT = 1_000_000.0
_LIMITS = tuple(10.0 * tens for tens in range(1, 100))


@dataclass(frozen=True, slots=True)
class Goal:
    """`product` is the one that the instruction was made from; `price_limit` is in dollars."""

    product: Product
    instruction: str
    attributes: tuple[str, ...]
    options: tuple[tuple[str, str], ...]
    price_limit: float

    @property
    def identity(self) -> str:
        """The same for goals that ask the same of the same product, whatever price is drawn."""
        wanted = [self.product.asin, sorted(self.attributes), sorted(self.options)]
        return hashlib.sha256(json.dumps(wanted).encode()).hexdigest()[:16]


def draw_prices(products: Sequence[Product], seed: int) -> dict[str, float]:
    """What each product costs: its price, a draw from its range, or 100 dollars."""
    return {each.asin: _price(each, seed) for each in products}


def make_goals(
    products: Sequence[Product],
    prices: Mapping[str, float],
    *,
    by_people: bool,
    price_seed: int,
    shuffle_seed: int,
) -> tuple[Goal, ...]:
    """Generated goals, one for each combination of a product's options; or those of people."""
    goals: list[Goal] = []
    for each in products:
        price = prices[each.asin]
        if by_people:
            for number, asked in enumerate(each.by_people):
                if asked.attributes:
                    limit = _limit(price, Random(f"{price_seed}/limit/{each.asin}/{number}"))
                    options = tuple(("", value) for value in asked.options)
                    goals.append(_goal(each, asked, asked.text.strip("."), options, limit))
        elif each.generated is not None:
            limit = _limit(price, Random(f"{price_seed}/limit/{each.asin}"))
            goals += _generated(each, each.generated, limit)
    Random(shuffle_seed).shuffle(goals)
    return tuple(goals)


def _generated(product: Product, asked: Instruction, limit: float) -> list[Goal]:
    names = sorted(product.options)
    goals = []
    for values in combinations(*(product.options[name] for name in names)):
        options = tuple(zip(names, values, strict=True))
        wanted = ", and ".join(f"{name}: {value}" for name, value in options)
        text = f"{asked.text} with {wanted}" if wanted else asked.text
        goals.append(_goal(product, asked, text, options, limit))
    return goals


def _goal(
    product: Product,
    asked: Instruction,
    text: str,
    options: tuple[tuple[str, str], ...],
    limit: float,
) -> Goal:
    if limit < NO_LIMIT:
        text += f", and price lower than {limit:.2f} dollars"
    return Goal(product, text, asked.attributes, options, limit)


def _price(product: Product, seed: int) -> float:
    match product.prices:
        case (low, high):
            return Random(f"{seed}/price/{product.asin}").uniform(low, high)
        case (price,):
            return price
    return 100.0


def _limit(price: float, random: Random) -> float:
    """The greater of two of the next four multiples of ten dollars above the price."""
    above = [limit for limit in _LIMITS if limit > price][:4]
    return max(random.sample(above, 2)) if len(above) >= 2 else NO_LIMIT

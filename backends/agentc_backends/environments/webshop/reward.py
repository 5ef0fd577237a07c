"""The reward of a purchase (Yao et al., 2022, section 3.2, with the released code's details).

reward = type * (attributes hit + options hit + [price within limit])
              / (attributes asked + options asked + 1)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agentc_backends.environments.webshop.goals import Goal
from agentc_backends.environments.webshop.matching import (
    alike,
    asked_option,
    plain_colour,
    title_words,
)
from agentc_backends.environments.webshop.products import Product

_SAME_TITLE = 0.2
_OTHER_TITLE = 0.1


@dataclass(frozen=True, slots=True)
class Score:
    """`kind` is the factor for the product's type: 1, 0.5, 0.1 or 0."""

    kind: float
    attributes: int
    options: int
    price: bool
    asked: int

    @property
    def reward(self) -> float:
        # In the order of the released code, which tells in the last digit.
        return (self.attributes + self.options + self.price) / self.asked * self.kind


def score(goal: Goal, bought: Product, chosen: Mapping[str, str], price: float) -> Score:
    """What buying a product, with the options chosen and at its price, is worth for a goal."""
    return Score(
        kind=type_factor(goal.product, bought),
        attributes=sum(_has_attribute(bought, wanted) for wanted in goal.attributes),
        options=_options_hit(goal, chosen),
        price=price <= goal.price_limit,
        asked=len(goal.attributes) + len(goal.options) + 1,
    )


def type_factor(wanted: Product, bought: Product) -> float:
    """1 where the products share a query, two levels of their categories, or over a fifth of the
    words of the wanted title; 0.1 and 0 where their titles share hardly a word, or none."""
    words = title_words(wanted.title)
    shared = set(words) & set(title_words(bought.title))
    score = len(shared) / len(words) if words else _SAME_TITLE
    if score == 0:
        return 0.0
    if score < _OTHER_TITLE:
        return 0.1
    same = (
        wanted.query == bought.query
        or len(set(wanted.levels) & set(bought.levels)) >= 2
        or score > _SAME_TITLE
    )
    return 1.0 if same else 0.5


def _has_attribute(bought: Product, wanted: str) -> bool:
    if any(alike(each, wanted) for each in bought.attributes):
        return True
    places = (bought.title, " ".join(bought.bullets), bought.description)
    return any(wanted in place.lower() for place in places)


def _options_hit(goal: Goal, chosen: Mapping[str, str]) -> int:
    """How many of the goal's options any chosen value is like, whichever option it is of."""
    values = [plain_colour(value) for value in chosen.values()]
    wanted = (asked_option(name, value) for name, value in goal.options)
    return sum(any(alike(value, each) for value in values) for each in wanted)

"""The reward of a purchase (Yao et al., 2022, section 3.2, with the released code's details).

reward = type * (attributes hit + options hit + [price within limit])
              / (attributes asked + options asked + 1)"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache

from agentc_backends.environments.webshop.catalogue import Goal, Product

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
    wanted = (goal_option(name, value) for name, value in goal.options)
    return sum(any(alike(value, each) for value in values) for each in wanted)


# Fuzzy comparison of attributes, options and titles. `token_set_ratio` is the measure of that name
# in the fuzzy-matching libraries of Python, on difflib as in the release that WebShop pins: other
# releases of them differ by a point or two.

ALIKE = 85
_SEPARATORS = re.compile(r"\W")
_LATIN_1 = dict.fromkeys(range(128, 256))
_WORD = re.compile(r"[^\W\d_]\w*")
_FUNCTION_TEXT = (
    "a an and are as at be but by can do for from has have if in into is it its no not of off on "
    "or our out over per s so than that the their them these this to up us use very was we when "
    "which while will with without you your"
)
_FUNCTION_WORDS = frozenset(_FUNCTION_TEXT.split())
# Which words count as colours decides rewards, so these are the ones of the released reward.
_COLOUR_TEXT = (
    "alabaster apricot aqua ash asphalt azure banana beige black blue blush bordeaux bronze brown "
    "burgundy camel camo caramel champagne charcoal cheetah chestnut chocolate christmas coffee "
    "cognac copper coral cranberry cream crystal dark denim eggplant elephant espresso fuchsia "
    "gold granite grape graphite grass gray green grey heather indigo ivory ivy khaki lavender "
    "lemon leopard light lilac lime magenta maroon mauve merlot midnight mint mocha multicolor "
    "mushroom mustard natural navy nude olive orange peach pewter pink plum purple rainbow red "
    "rose royal rust sand sapphire seashell silver skull slate steel stone stonewash sunflower "
    "tan taupe teal tiger turquoise violet walnut wheat white wine yellow"
)
COLOURS = tuple(_COLOUR_TEXT.split())


def alike(first: str, second: str) -> bool:
    """Whether `token_set_ratio` is above 85; most pairs are told apart by lengths alone."""
    one, two = _words(first), _words(second)
    shared = one & two
    if not shared and _most(" ".join(one), " ".join(two)) <= ALIKE:
        return False
    return token_set_ratio(first, second) > ALIKE


def token_set_ratio(first: str, second: str) -> int:
    """0 to 100: how alike two texts are as sets of words; 100 where one holds the other's words."""
    one, two = _words(first), _words(second)
    if not one or not two:
        return 0
    both = " ".join(sorted(one & two))
    full_one = f"{both} {' '.join(sorted(one - two))}".strip()
    full_two = f"{both} {' '.join(sorted(two - one))}".strip()
    return max(_ratio(both, full_one), _ratio(both, full_two), _ratio(full_one, full_two))


def plain_colour(value: str) -> str:
    """The first colour, in alphabetical order, whose name stands anywhere in a value; else the
    value."""
    return next((colour for colour in COLOURS if colour in value), value)


def goal_option(name: str, value: str) -> str:
    """An option of a goal as the released reward compares it. People's goals name values alone. Of
    a generated goal's it takes name and value as one text, and only a value that is a colour's bare
    name as that colour."""
    if not name:
        return plain_colour(value)
    return next((colour for colour in COLOURS if colour in (name, value)), str((name, value)))


def title_words(title: str) -> tuple[str, ...]:
    """Words of a title that can name things, each as often as it stands there: all but function
    words and numbers, cut at hyphens and apostrophes as taggers do."""
    words = (word.lower() for word in _WORD.findall(title))
    return tuple(word for word in words if word not in _FUNCTION_WORDS)


@lru_cache(maxsize=1 << 16)
def _words(text: str) -> frozenset[str]:
    return frozenset(_SEPARATORS.sub(" ", text.translate(_LATIN_1)).lower().split())


def _most(first: str, second: str) -> int:
    """No ratio of two texts of these lengths can be higher."""
    total = len(first) + len(second)
    return round(200 * min(len(first), len(second)) / total) if total else 0


def _ratio(first: str, second: str) -> int:
    if first == second:
        return 100
    if not first or not second:
        return 0
    return round(100 * SequenceMatcher(None, first, second).ratio())

"""Episodes to play in two WebShops at once: what a buyer would do next, given the page.

Kinds: the expert's way; another product; other options or none; a product above the price limit;
and random clicks, searches and words that mean nothing. Drawn from a seed.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from random import Random

from agentc_backends.environments.webshop.catalogue import Goal
from agentc_backends.environments.webshop.expert import expert_steps
from agentc_backends.environments.webshop.pages import BACK, BUY, DETAILS, NEXT, PREVIOUS
from agentc_backends.environments.webshop.shop import Shop

KINDS = ("expert", "other product", "other options", "over the price", "random")
MOST_STEPS = 25
_BUTTONS = frozenset(button.lower() for button in (BACK, BUY, NEXT, PREVIOUS, *DETAILS))
_NONSENSE = (
    "look", "", "buy now", "click[]", "search[]", "click[nothing]", "click[Search]", "search",
    " search[lamp]", "Click[Buy Now]", "search[a] [b]", "search[a[b]]", "click[buy now",
    "search[zzzz qqqq]", "click[back to search] now", "think[it is red]", "search[a]\nclick[b]",
)  # fmt: skip


def walk(kind: str, shop: Shop, number: int, random: Random) -> Generator[str, Sequence[str], None]:
    """Actions, one at a time; each is sent what can be clicked after the one before."""
    goal = shop.goals[number]
    clickable: Sequence[str] = yield ""
    if kind == "random":
        for _ in range(MOST_STEPS):
            clickable = yield _anything(shop, goal, clickable, random)
        return
    steps = [step.action for step in expert_steps(shop, goal, query="title")]
    if kind == "expert":
        for action in steps:
            clickable = yield action
        return
    if kind == "other options":
        first = next(n for n, action in enumerate(steps) if action.startswith("click[b0")) + 1
        for action in steps[:first]:
            clickable = yield action
    else:
        dear = [p for p in shop.products if shop.prices[p.asin] > goal.price_limit]
        alike = [p for p in dear if p.category == goal.product.category] or dear
        if kind == "over the price" and alike:
            wanted = random.choice(alike)
            clickable = yield f"search[{wanted.title.replace('[', ' ').replace(']', ' ')}]"
            while wanted.asin.lower() not in clickable and "next >" in clickable:
                if not any(each.startswith("b0") for each in clickable):
                    return
                clickable = yield "click[next >]"
            clickable = yield f"click[{wanted.asin.lower()}]"
        else:
            clickable = yield f"search[{goal.instruction.replace('[', ' ').replace(']', ' ')}]"
            shown = [each for each in clickable if each not in _BUTTONS]
            if not shown:
                return
            clickable = yield f"click[{random.choice(shown)}]"
    values = [each for each in clickable if each not in _BUTTONS]
    for value in random.sample(values, min(len(values), random.randint(0, 3))):
        clickable = yield f"click[{value}]"
    if random.random() < 0.3:
        detail = random.choice(DETAILS)
        clickable = yield f"click[{detail}]"
        clickable = yield "click[< Prev]"
    yield "click[Buy Now]"


def _anything(shop: Shop, goal: Goal, clickable: Sequence[str], random: Random) -> str:
    draw = random.random()
    if draw < 0.12:
        return random.choice(_NONSENSE)
    if draw < 0.3 or not clickable or list(clickable) == ["search"]:
        words = random.choice((goal.instruction, random.choice(shop.products).title)).split()
        return f"search[{' '.join(random.sample(words, min(len(words), random.randint(1, 6))))}]"
    # Mostly what is not buying, for buying ends the walk.
    likely = [each for each in clickable if each != "buy now" or draw > 0.9]
    chosen = random.choice(likely)
    return f"click[{chosen.upper() if draw > 0.8 else chosen}]"

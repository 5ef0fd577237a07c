"""The expert: searches for a goal's product, pages to it, chooses its options and buys it.

It knows which product a goal was made from, as no agent does. `instruction` searches with the
words of the instruction wherever that finds the product; `title` always with the title.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentc_backends.environments.webshop.pages import BUY, NEXT, PAGE_SIZE

if TYPE_CHECKING:
    from agentc_backends.environments.webshop.catalogue import Goal
    from agentc_backends.environments.webshop.shop import Shop

_NO_KEYWORDS = re.compile(r"[\[\]\s]+")
_PRICE = re.compile(r", and price lower than [\d.]+ dollars$")


@dataclass(frozen=True, slots=True)
class ThoughtfulAction:
    """An action with the thought that leads to it."""

    action: str
    thought: str
    option: str | None = None
    """The name of the option that the action chooses, where the goal tells it."""


def expert_steps(
    shop: Shop,
    goal: Goal,
    *,
    query: str,
    thoughts: str = "plain",
    case: str = "lower",
    page_size: int = PAGE_SIZE,
) -> tuple[ThoughtfulAction, ...]:
    """The expert's episode; empty where no search of it finds the product among fifty. `case`:
    actions in lower case, or in the letters that the page shows. `thoughts`: see `backend.py`."""
    title = goal.product.title
    asked = _PRICE.sub("", goal.instruction)
    for words in (asked, title) if query == "instruction" else (title, asked):
        keywords = _NO_KEYWORDS.sub(" ", words).strip()
        found = [product.asin for product in shop.search(keywords.lower())]
        if goal.product.asin in found:
            turns = found.index(goal.product.asin) // page_size
            return tuple(
                ThoughtfulAction(
                    step.action.lower() if case == "lower" else step.action,
                    _thought(step, thoughts),
                )
                for step in _steps(goal, keywords, turns)
            )
    return ()


def _thought(step: ThoughtfulAction, thoughts: str) -> str:
    if thoughts == "plain":
        return step.thought
    if thoughts == "none" or step.option is None:
        return ""
    value = step.action.partition("[")[2].removesuffix("]")
    return f"The instruction asks for {step.option}: {value}."


def _steps(goal: Goal, keywords: str, turns: int) -> Iterator[ThoughtfulAction]:
    yield ThoughtfulAction(f"search[{keywords}]", "I search for what the instruction asks for.")
    for _ in range(turns):
        yield ThoughtfulAction(f"click[{NEXT}]", "No product here fits, so I turn the page.")
    asin = goal.product.asin
    yield ThoughtfulAction(f"click[{asin}]", f"{asin.upper()} seems to fit, so I open it.")
    for name, value in goal.options:
        values = _values(goal, name, value)
        for chosen in values:
            yield ThoughtfulAction(
                f"click[{chosen}]", f"The instruction asks for {chosen}.", name or None
            )
    yield ThoughtfulAction(f"click[{BUY}]", "This is what the instruction asks for, so I buy it.")


def _values(goal: Goal, name: str, value: str) -> list[str]:
    """What to click for an option; people's goals name the value alone, and not always as shown."""
    if name:
        return [value]
    return [v for values in goal.product.options.values() for v in values if v == value.lower()][:1]

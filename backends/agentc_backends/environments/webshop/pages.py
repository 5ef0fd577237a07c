"""The pages of the shop as text, and what can be clicked on them.

Visible texts joined by ` [SEP] `, as the released text environment shows them. Pure functions of
a `View`; `environment.py` moves between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from agentc_backends.environments.webshop.catalogue import Product

PAGE_SIZE = 10
MOST_RESULTS = 50

Kind: TypeAlias = Literal["search", "results", "item", "detail", "done"]
BACK, PREVIOUS, NEXT, BUY = "Back to Search", "< Prev", "Next >", "Buy Now"
_BLANKS = " \n\t\f\r"
DETAILS = ("Description", "Features", "Reviews")


def search_page(instruction: str) -> str:
    return _joined(("WebShop", "Instruction:", instruction, "Search"))


def results_page(
    instruction: str | None, found: Sequence[Product], page: int, size: int = PAGE_SIZE
) -> str:
    """`found` is all results; `page` counts from 1; `size` results are on each."""
    lines = [f"Page {page} (Total results: {len(found)})"]
    lines += _turns(page)
    for product in results_on(found, page, size):
        lines += [product.asin, product.title, product.price_tag]
    return _below(instruction, lines)


def item_page(instruction: str | None, product: Product) -> str:
    lines = [PREVIOUS]
    for name, values in product.options.items():
        lines += [name, *values]
    lines += [product.title, f"Price: {product.price_tag}", "Rating: N.A.", *DETAILS, BUY]
    return _below(instruction, lines)


def detail_page(instruction: str | None, product: Product, detail: str) -> str:
    """`detail` is one of DETAILS. No catalogue has reviews."""
    if detail == "Description":
        lines = [product.description]
    elif detail == "Features":
        lines = [f" {bullet}" for bullet in product.bullets]
    else:
        lines = []
    return _below(instruction, [PREVIOUS, *lines])


def done_page(reward: float) -> str:
    """The released page lists here, for annotators, what was bought; agents never act on it."""
    return _joined(
        ("Thank you for shopping with us!", "Your score (min 0.0, max 1.0)", str(reward))
    )


def results_on(found: Sequence[Product], page: int, size: int = PAGE_SIZE) -> Sequence[Product]:
    """The results of a page."""
    return found[(page - 1) * size : page * size]


@dataclass(frozen=True, slots=True)
class Click:
    """What a click does: `press` a button, `open` a product, or `choose` an option's value."""

    does: Literal["press", "open", "choose"]
    target: str
    value: str = ""


def results_choices(found: Sequence[Product], page: int, size: int = PAGE_SIZE) -> dict[str, Click]:
    """By the text to click, in lower case."""
    buttons = (BACK, *_turns(page))
    choices = {button.lower(): Click("press", button) for button in buttons}
    for product in results_on(found, page, size):
        choices[product.asin.lower()] = Click("open", product.asin)
    return choices


def item_choices(product: Product) -> dict[str, Click]:
    choices: dict[str, Click] = {}
    # The last of two options that share a value gets the click, as released.
    for name, values in product.options.items():
        for value in values:
            choices[value] = Click("choose", name, value)
    for button in (BACK, PREVIOUS, *DETAILS, BUY):
        choices[button.lower()] = Click("press", button)
    return choices


def detail_choices() -> dict[str, Click]:
    return {button.lower(): Click("press", button) for button in (BACK, PREVIOUS)}


def _turns(page: int) -> list[str]:
    """As released, there is a next page even after the last."""
    return [PREVIOUS, NEXT] if page > 1 else [NEXT]


def _below(instruction: str | None, lines: Sequence[str]) -> str:
    """Without an instruction, for agents that read it on the first page."""
    above = () if instruction is None else ("Instruction:", instruction)
    return _joined((*above, BACK, *lines))


def _joined(texts: Sequence[str]) -> str:
    return " [SEP] ".join(text.strip() for text in texts if _shows(text))


def _shows(text: str) -> bool:
    """Whether a text of a page is one for the released reader of its HTML: no text is none, blank
    lines are none, and spaces alone are an empty one."""
    return bool(text) and ("\n" not in text or bool(text.strip(_BLANKS)))

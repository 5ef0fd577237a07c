"""Invented pages: a grammar of few parts over the classes of our own stylesheet, and their expert.

A page has a header, cards in columns, and a footer; its description tells what it says and some of
how it looks, and leaves two or three looks open. The stylesheet is in `studio.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random

from agentc_backends.environments.colbench.frontend.pages import PageTask, page_task
from agentc_backends.environments.colbench.frontend.settings import FrontendSettings
from agentc_backends.environments.colbench.frontend.studio import OWN

LOOKS: Mapping[str, Mapping[str, str]] = {
    # By part: the classes that it may have, and how a description says so.
    "header": {"blue": "a blue header", "green": "a green header", "red": "a red header"},
    "title": {
        "left": "its title at the left",
        "center": "its title in the middle",
        "right": "its title at the right",
    },
    "size": {"small": "a small title", "large": "a large title"},
    "columns": {"one": "one column", "two": "two columns", "three": "three columns"},
    "cards": {"grey": "grey cards", "green": "green cards", "red": "red cards"},
    "footer": {"blue": "a blue footer", "green": "a green footer", "grey": "a grey footer"},
}
_PLACES = [
    "bakery",
    "bookshop",
    "florist",
    "garage",
    "museum",
    "library",
    "theatre",
    "school",
    "hotel",
    "gym",
    "cinema",
    "market",
    "pharmacy",
    "dentist",
    "brewery",
    "farm",
    "zoo",
    "harbour",
    "station",
    "gallery",
]
_NAMES = [
    "Oak",
    "Elm",
    "River",
    "Hill",
    "Lake",
    "Star",
    "Sun",
    "Moon",
    "North",
    "South",
    "Harbour",
    "Garden",
    "Mill",
    "Bridge",
]
_CARDS = [
    "Prices",
    "Hours",
    "Team",
    "News",
    "Events",
    "Contact",
    "Tickets",
    "Courses",
    "Offers",
    "History",
]


@dataclass(frozen=True, slots=True)
class InventedPage:
    """`looks` says the class of each part, `open` which parts the description does not tell."""

    title: str
    cards: tuple[str, ...]
    looks: Mapping[str, str]
    open: tuple[str, ...]
    task: PageTask

    def expert(self, chance: Random, most: int, careless: float) -> list[str]:
        """Pages, each but the first with one part as it is wanted that was guessed before; the
        last is the answer. At most so many."""
        guessed = {part: chance.choice([*LOOKS[part]]) for part in self.open}
        looks = {**self.looks, **guessed}
        pages = [source(self.title, self.cards, looks)]
        for part in self.open:
            left = chance.random() < careless
            if looks[part] != self.looks[part] and not left:
                looks = {**looks, part: self.looks[part]}
                pages.append(source(self.title, self.cards, looks))
        return pages[:most]


def invent(settings: FrontendSettings) -> dict[str, InventedPage]:
    """As many different tasks as are asked for, by id."""
    made: dict[str, InventedPage] = {}
    for page in _stream(str(settings.invented_seed)):
        made.setdefault(page.task.id, page)
        if len(made) == settings.invented_tasks:
            break
    return made


def source(title: str, cards: tuple[str, ...], looks: Mapping[str, str]) -> str:
    """The page's HTML."""
    sections = "".join(
        f'<section class="{looks["cards"]}"><h2>{card}</h2></section>\n' for card in cards
    )
    return (
        f'<html>\n<link rel="stylesheet" href="{OWN}">\n<body>\n'
        f'<header class="{looks["header"]} {looks["title"]}">'
        f'<h1 class="{looks["size"]}">{title}</h1></header>\n'
        f'<main class="{looks["columns"]}">\n{sections}</main>\n'
        f'<footer class="{looks["footer"]}">{title}</footer>\n</body>\n</html>'
    )


def _stream(seed: str) -> Iterator[InventedPage]:
    index = 0
    while True:
        yield _drawn(Random(f"page {seed} {index}"))
        index += 1


def _drawn(chance: Random) -> InventedPage:
    place = chance.choice(_PLACES)
    title = f"{chance.choice(_NAMES)} {place.capitalize()}"
    cards = tuple(chance.sample(_CARDS, chance.choice((3, 4))))
    looks = {part: chance.choice([*words]) for part, words in LOOKS.items()}
    open_parts = tuple(sorted(chance.sample([*LOOKS], chance.choice((2, 3)))))
    told = [LOOKS[part][looks[part]] for part in LOOKS if part not in open_parts]
    description = (
        f"A page for the {place} {title}, with cards for {', '.join(cards)}. It has "
        f"{', '.join(told)}. Link {OWN}; its classes are {_classes()}."
    )
    return InventedPage(
        title, cards, looks, open_parts, page_task(description, source(title, cards, looks))
    )


def _classes() -> str:
    return ", ".join(dict.fromkeys(word for words in LOOKS.values() for word in words))

"""Guess My City's cities and the table of what is true of them, as an oracle.

Cities and countries are read from `data/cities.txt` and `data/countries.txt`. Questions are
understood by their form (`is your city located in X`, `what is the climate like`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from agentc_backends.environments.guessing_games.secrets import (
    Guessable,
    Secret,
    cells,
    lines_of,
    plain,
    question_body,
    words_of,
)

_CITY = (
    r"(?:it|(?:your|the|this|that) (?:home ?town|home city|city|town|place)"
    r"(?: (?:that |where )?you(?: a)?re from| you come from| in question)?)"
)
_STEM = re.compile(
    rf"^(?:(?:is|could|might|would) {_CITY} (?:be )?(?:called |named |the city of )?"
    rf"|(?:are|do) you (?:come )?(?:from|live in|living in) (?:the city of )?"
    rf"|is (?:the )?name of {_CITY} )?"
)
_ABOUT = re.compile(
    r"^(?:is|was|does|do|are|has|have|would|can|could)(?: the name of)? "
    rf"(?:{_CITY}|you)(?:s name)? "
)
_IN = re.compile(
    r"^(?:be )?(?:city )?(?:located|situated|found|lie|from|live|a city|a town)? ?"
    r"(?:in|on|within|inside|from) (?:the )?"
    r"(?:(?:continent|country|state|province|region|island|mainland|department) of )?"
)
_PART = re.compile(
    r"^(?:(north ?east|north ?west|south ?east|south ?west|north|south|east|west|central)(?:ern)?"
    r"|center|middle|interior)(?: central)?"
    r" ?(?:part|region|side|area|half)? ?(?:of (?:the )?)?(.*)$"
)
_COAST = re.compile(
    r"^(?:be )?(?:located |situated )?(?:(?:on|near|at|by|along|close to) (?:the |a )?"
    r"(?:coast|coastline|sea|ocean|seaside)|(?:a |in a )?(?:coastal|port|seaside)"
    r"(?: city| town| area| region)?|have (?:a |any )?(?:coast|coastline|beach|beaches|port|seaport"
    r"|harbor|harbour)|near a large body of water or coastline)$"
)
_POPULATION = re.compile(
    r"population (?:\w+ ){0,3}?(over|more than|at least|above|greater than|larger than|exceeding|"
    r"less than|under|"
    r"below|smaller than|fewer than) (\d+) million"
)
_CAPITAL = re.compile(
    r"^(?:the |a )?(?:national )?capital(?: city)?(?: of (?:the )?(.*?))?"
    r"(?: it is located in| you live in)?$"
)
_LETTER = re.compile(r"(?:start|begin)s? with (?:the |a )?(?:letter )?([a-z])$")
_SOUTHERN = {"Brazil", "Peru", "Chile", "Australia", "Argentina", "Ecuador", "Congo", "Indonesia"}
_NORTH_OF_THE_LINE = "Medan, Indonesia"
_ISLANDS = ("Java", "Honshu", "Sumatra", "Taiwan", "England")
_RELIGIONS = {
    "Islam": ("islam", "islamic", "muslim", "muslims"),
    "Christianity": ("christianity", "christian", "christians"),
    "Hinduism": ("hinduism", "hindu", "hindus"),
    "Buddhism": ("buddhism", "buddhist", "buddhists"),
}
_CLIMATES = ("tropical", "subtropical", "temperate", "continental", "desert", "semi arid")
_CONTINENTS = ("Asia", "Africa", "Europe", "North America", "South America", "Australia")


@dataclass(frozen=True, slots=True)
class Country:
    names: tuple[str, ...]
    continent: str
    regions: tuple[str, ...]
    language: str
    religion: str
    capital: str
    left: bool


@dataclass(frozen=True, slots=True)
class City:
    """`population` is in thousands; `part` of the country (`northeast`), or empty."""

    id: str
    name: str
    country: Country
    population: int
    coast: bool
    part: str
    areas: tuple[str, ...]
    climate: str
    language: str

    @property
    def capital(self) -> bool:
        return self.name == self.country.capital

    @property
    def island(self) -> bool:
        alone = self.country.names[0] in ("Singapore", "Cuba")
        return alone or any(area in _ISLANDS for area in self.areas)

    @property
    def southern(self) -> bool:
        return self.country.names[0] in _SOUTHERN and self.id != _NORTH_OF_THE_LINE

    @property
    def places(self) -> frozenset[str]:
        """Everything that the city lies in, plain."""
        country = self.country
        found = (country.continent, *country.regions, *country.names, *self.areas)
        return frozenset(plain(place) for place in found)


class CityTable:
    """Answers questions about cities from the tables of cities and countries."""

    def __init__(self) -> None:
        countries = {country.names[0]: country for country in map(_country, _rows("countries"))}
        rows = [(row, countries[row[1]]) for row in _rows("cities")]
        self.cities = {city.id: city for city in (_city(row, country) for row, country in rows)}
        secrets, tails = [], {}
        for row, country in rows:
            names = tuple(name.lower() for name in (row[0], *_listed(row[2])))
            secret = Secret(f"{row[0]}, {row[1]}", names, country.continent)
            secrets.append(secret)
            tails[secret.id] = country.names
        self.guessable = Guessable(tuple(secrets), _STEM, tails)
        self._places = frozenset().union(*(city.places for city in self.cities.values()))
        self._languages = tuple(sorted({plain(c.language) for c in self.cities.values()}))
        self.questions = _questions(self.cities.values())

    def guess_of(self, secret: str) -> str:
        """A question that guesses a secret."""
        return f"Is your city {secret}?"

    def answer(self, secret: str, question: str) -> str | None:
        """`Yes.`, `No.` or a sentence; None where the table has no answer."""
        guess = self.guessable.guess(question)
        if guess is not None:
            return "Yes." if guess == secret else "No."
        city, text = self.cities[secret], question_body(question)
        answer = _open_answer(city, text)
        if answer is not None:
            return answer
        test = self._test(text)
        return None if test is None else ("Yes." if test(city) else "No.")

    def _test(self, text: str) -> Callable[[City], bool] | None:
        if " or " in text or " not " in text:
            return None
        about = _ABOUT.sub("", text, count=1)
        if about == text and not re.match(r"^(?:is|do|does|are) ", text):
            return None
        return self._place_test(about) or self._property_test(about)

    def _place_test(self, about: str) -> Callable[[City], bool] | None:
        inside = _IN.sub("", about, count=1)
        if inside == about:
            return None
        if inside in self._places:
            return lambda city: inside in city.places
        if inside in ("northern hemisphere", "southern hemisphere"):
            return lambda city: city.southern == (inside == "southern hemisphere")
        if inside in ("an island", "island", "a island"):
            return lambda city: city.island
        found = _PART.match(inside)
        if found is None:
            return None
        part = (found[1] or "central").replace(" ", "")
        where = found[2].strip()
        if where in ("its country", "your country", "country", "that country", "this country", ""):
            return lambda city: _lies(city, part)
        if where in self._places:
            # Parts are those of countries: of a continent nothing is known.
            if not any(where in map(plain, city.country.names) for city in self.cities.values()):
                return None
            return lambda city: where in map(plain, city.country.names) and _lies(city, part)
        return None

    def _property_test(self, about: str) -> Callable[[City], bool] | None:
        if _COAST.match(about):
            return lambda city: city.coast
        capital = _CAPITAL.match(about)
        if capital:
            return self._capital_test(capital[1] or "")
        people = _POPULATION.search(about)
        if people:
            limit = int(people[2]) * 1000
            more = people[1] not in ("less than", "under", "below", "smaller than", "fewer than")
            return lambda city: (city.population > limit) == more
        letter = _LETTER.search(about)
        if letter:
            return lambda city: plain(city.name).startswith(letter[1])
        if re.search(r"\blanguage\b|\bspeak\b|\bspoken\b|\bspeaking\b", about):
            language = words_of(about, self._languages)
            return language and (lambda city: plain(city.language) == language)  # type: ignore[return-value]
        for religion, words in _RELIGIONS.items():
            if words_of(about, words):
                return lambda city, religion=religion: city.country.religion == religion  # type: ignore[misc]
        if "climate" in about:
            climate = words_of(about, _CLIMATES)
            return climate and (lambda city: plain(city.climate) == climate)  # type: ignore[return-value]
        if re.search(r"drive on the left", about):
            return lambda city: city.country.left
        return None

    def _capital_test(self, of: str) -> Callable[[City], bool] | None:
        """Whether it is a capital, or that of a place."""
        if of in ("", "its country", "a country", "country", "your country", "that country"):
            return lambda city: city.capital
        if of in self._places:
            return lambda city: city.capital and of in map(plain, city.country.names)
        return None


@lru_cache(maxsize=1)
def city_table() -> CityTable:
    """The table, read once."""
    return CityTable()


def _lies(city: City, part: str) -> bool:
    """Whether a city lies in a part: the northeast is of the north and of the east."""
    return city.part == part or (part != "central" and part in city.part)


def _open_answer(city: City, text: str) -> str | None:
    """A sentence, where a question asks what something is and the table knows."""
    if not re.match(r"^(?:(?:in |on )?(?:what|which)|where|how|can you tell me)\b", text):
        return None
    country = city.country.names[0]
    for words, sentence in (
        (("language", "languages"), f"The main language is {city.language}."),
        (("climate", "weather"), f"The climate is {city.climate}."),
        (("population", "many people"), f"About {_rounded(city.population)} people live there."),
        (("religion",), city.country.religion != "none"
         and f"The main religion is {city.country.religion}."),
        (("continent",), f"It is in {city.country.continent}."),
        (("country",), f"It is in {country}."),
        (("state", "province", "island"), city.areas and f"It is in {city.areas[-1]}."),
        (("geographical location", "part", "region", "located"), city.part
         and f"It is in the {city.part} of its country, in {city.country.continent}."),
    ):  # fmt: skip
        if sentence and words_of(text, words):
            return str(sentence)
    return None


def _rounded(thousands: int) -> str:
    return f"{thousands / 1000:.1f} million"


def _questions(cities: object) -> tuple[str, ...]:
    """What the expert may ask, from wide to narrow."""
    known = list(cities)  # type: ignore[call-overload]
    requested_resources = [f"Is your city located in {continent}?" for continent in _CONTINENTS]
    for region in dict.fromkeys(r for city in known for r in city.country.regions):
        requested_resources.append(f"Is your city located in {_with_article(region)}?")
    requested_resources += [
        "Is your city located on the coast?",
        "Is your city the capital of its country?",
        "Is your city located on an island?",
        "Is your city located in the southern hemisphere?",
        "Do cars drive on the left in your city?",
    ]
    requested_resources += [
        f"Does your city have a {c} climate?" for c in ("tropical", "temperate", "desert")
    ]
    requested_resources += [
        f"Does your city have a population of more than {n} million people?" for n in (2, 3, 4, 8)
    ]
    for country in dict.fromkeys(city.country.names[0] for city in known):
        requested_resources.append(f"Is your city located in {_with_article(country)}?")
    requested_resources += [
        f"Is your city located in the {part}ern part of its country?"
        for part in ("north", "south", "east", "west")
    ]
    requested_resources.append("Is your city located in the central part of its country?")
    for area in dict.fromkeys(area for city in known for area in city.areas):
        requested_resources.append(f"Is your city located in {area}?")
    for language in dict.fromkeys(city.language for city in known):
        requested_resources.append(f"Is {language} the main language of your city?")
    return tuple(requested_resources)


def _with_article(place: str) -> str:
    return f"the {place}" if place in ("USA", "UK", "Middle East", "Caribbean") else place


def _rows(file: str) -> list[list[str]]:
    return [cells(line, ";") for line in lines_of(f"{file}.txt")]


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part for part in cells(text, ",") if part)


def _country(row: list[str]) -> Country:
    name, others, continent, regions, language, religion, capital, left = row
    return Country((name, *_listed(others)), continent, _listed(regions), language, religion,
                   capital, left == "yes")  # fmt: skip


def _city(row: list[str], country: Country) -> City:
    name, of, _, population, coast, part, areas, climate, *language = row
    return City(f"{name}, {of}", name, country, int(population), coast == "yes", part,
                _listed(areas), climate, language[0] if language else country.language)  # fmt: skip

"""Products and goals of a catalogue, read from the JSON files of WebShop's release or of
`invented.py`.

Three files: the list of products, attributes by product (with the generated instruction), and
instructions that people wrote. Standard library only: the declaration and the server read them."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import itertools
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product as combinations
from random import Random
from typing import Any

_NO_PRICE = 100.0
_MOST_BYTES = 16 << 30
_PIECE = 1 << 20
_LONGEST_ROW = 32 << 20
_BETWEEN_ROWS = re.compile(r"[\s,]*")


class CatalogueError(ValueError):
    """A catalogue's file cannot be read or is not what it should be."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """What people ask of a product: wanted attributes and option values."""

    text: str
    attributes: tuple[str, ...]
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Product:
    """`prices` are one or, for a range, two dollars amounts; empty where none is known."""

    asin: str
    title: str
    description: str
    bullets: tuple[str, ...]
    category: str
    query: str
    levels: tuple[str, ...]
    prices: tuple[float, ...]
    options: Mapping[str, tuple[str, ...]]
    attributes: tuple[str, ...]
    generated: Instruction | None
    by_people: tuple[Instruction, ...]

    @property
    def price_tag(self) -> str:
        """As pages show it: `$24.99`, `$19.99 to $27.99`."""
        return " to ".join(f"${price}" for price in self.prices or (_NO_PRICE,))


def read_json(content: bytes, name: str) -> Any:
    """A file's JSON, decompressed where it is gzip. Raises CatalogueError."""
    try:
        return json.loads(b"".join(_pieces(content, name)))
    except (ValueError, RecursionError) as error:
        if isinstance(error, CatalogueError):
            raise
        raise CatalogueError(f"{name} is no JSON") from None


def read_rows(content: bytes, name: str) -> Iterator[Any]:
    """The rows of a file's JSON list, one at a time: a catalogue may be larger than memory would
    hold of it at once. What follows the last row that is asked for is not read. Raises
    CatalogueError."""
    decode = codecs.getincrementaldecoder("utf-8")().decode
    row_at = json.JSONDecoder().raw_decode
    pieces = _pieces(content, name)
    text, at, rows = "", 0, -1
    try:
        for piece in itertools.chain(pieces, [b""]):
            text, at = text[at:] + decode(piece, final=not piece), 0
            if rows < 0:
                text = text.lstrip()
                if text and text[0] != "[":
                    json.loads(text + "".join(decode(rest) for rest in pieces))
                    raise CatalogueError(f"{name} is no list of products")
                at, rows = (1, 0) if text else (0, -1)
            while rows >= 0:
                # Commas are no part of what tells rows apart; a list of products needs no more.
                gap = _BETWEEN_ROWS.match(text, at)
                at = gap.end() if gap else at
                if text.startswith("]", at):
                    return
                try:
                    row, end = row_at(text, at)
                except ValueError:
                    if not piece or len(text) - at > _LONGEST_ROW:
                        raise
                    break  # the row continues in the next piece
                at, rows = end, rows + 1
                yield row
        raise ValueError("no end of the list")
    except (ValueError, RecursionError) as error:
        if isinstance(error, CatalogueError):
            raise
        raise CatalogueError(f"{name} is no JSON") from None


def _pieces(content: bytes, name: str) -> Iterator[bytes]:
    """A file's content a piece at a time, decompressed where it is gzip. Raises CatalogueError."""
    if content[:2] != b"\x1f\x8b":
        for start in range(0, len(content), _PIECE):
            yield content[start : start + _PIECE]
        return
    total = 0
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
            while piece := stream.read(_PIECE):
                total += len(piece)
                if total > _MOST_BYTES:
                    raise CatalogueError(f"{name} holds over {_MOST_BYTES >> 20} MiB")
                yield piece
    except (OSError, EOFError, zlib.error):
        raise CatalogueError(f"{name} is no JSON") from None


def read_products(
    listed: Iterable[Any], attributes: Any, instructions: Any, limit: int | None
) -> tuple[Product, ...]:
    """The first `limit` rows of the list as products; a row whose number is no product's, or was
    there before, is left out. Raises CatalogueError."""
    for what, value in (("attributes", attributes), ("instructions", instructions)):
        if not isinstance(value, dict):
            raise CatalogueError(f"the file of {what} is no mapping from products")
    found: dict[str, Product] = {}
    for number, row in enumerate(itertools.islice(listed, limit)):
        try:
            asin = row["asin"]
            if asin == "nan" or len(asin) > 10 or asin in found:
                continue
            found[asin] = _product(row, attributes.get(asin) or {}, instructions.get(asin) or ())
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise CatalogueError(
                f"row {number} of the catalogue is no product ({type(error).__name__}: {error})"
            ) from None
    if not found:
        raise CatalogueError("the catalogue holds no product")
    return tuple(found.values())


def _product(
    row: Mapping[str, Any], known: Mapping[str, Any], instructions: Sequence[Mapping[str, Any]]
) -> Product:
    bullets = row["small_description"]
    return Product(
        asin=row["asin"],
        title=row["name"],
        description=row["full_description"] or "",
        bullets=tuple(bullets) if isinstance(bullets, list) else (bullets or "",),
        category=row["category"],
        query=row["query"].lower().strip(),
        levels=tuple(level.strip() for level in row["product_category"].split("›")),
        prices=_prices(row.get("pricing") or ""),
        options=_options(row.get("customization_options") or {}),
        attributes=tuple(known.get("attributes", ())),
        generated=_generated(known),
        by_people=tuple(
            Instruction(
                each["instruction"],
                tuple(each["instruction_attributes"]),
                tuple(each["instruction_options"]),
            )
            for each in instructions
        ),
    )


def _generated(known: Mapping[str, Any]) -> Instruction | None:
    text, wanted = known.get("instruction"), known.get("instruction_attributes")
    return Instruction(text, tuple(wanted)) if text and wanted else None


def _prices(text: str) -> tuple[float, ...]:
    amounts = (re.sub(r"[^\d.]", "", part) for part in text.split("$")[1:])
    return tuple(float(amount) for amount in amounts if amount)[:2]


def _options(given: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    return {
        name.lower(): tuple(
            content["value"].strip().replace("/", " | ").lower() for content in contents
        )
        for name, contents in given.items()
        if contents is not None
    }


# Goals: what to buy, in which options, and below which price. The list's order is the released one
# (shuffled by seed 233), so a goal's number here is its number in published lists. Prices and price
# limits are drawn from a seed; as released they differ from one process to the next, and with them
# texts and rewards.

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
            goals += _generated_goals(each, each.generated, limit)
    Random(shuffle_seed).shuffle(goals)
    return tuple(goals)


def _generated_goals(product: Product, asked: Instruction, limit: float) -> list[Goal]:
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

"""What the episodes of a server share: catalogue, prices, goals, search index.

Built once by `job_serve.py`; the declaration builds it without the index, to resolve splits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from agentc_backends.environments.server.splits import ReadFile
from agentc_backends.environments.webshop.catalogue import (
    CatalogueError,
    Goal,
    Product,
    draw_prices,
    make_goals,
    read_json,
    read_products,
    read_rows,
)
from agentc_backends.environments.webshop.invented import invent
from agentc_backends.environments.webshop.pages import MOST_RESULTS
from agentc_backends.environments.webshop.search import SearchIndex
from agentc_backends.environments.webshop.settings import OWN, ShopOptions


class Shop:
    """Products in the catalogue's order, goals in the order of their numbers."""

    def __init__(self, products: tuple[Product, ...], options: ShopOptions, digest: str) -> None:
        self.products = products
        self.by_asin = {product.asin: product for product in products}
        self.digest = digest
        self.prices = draw_prices(products, options.price_seed)
        self.goals: tuple[Goal, ...] = make_goals(
            products,
            self.prices,
            by_people=options.human_goals,
            price_seed=options.price_seed,
            shuffle_seed=options.shuffle_seed,
        )
        if not self.goals:
            raise CatalogueError("the catalogue gives no goal with these settings")

    @cached_property
    def goals_digest(self) -> str:
        """Of all instructions in order, hence of products, prices and limits."""
        digest = hashlib.sha256()
        for number, goal in enumerate(self.goals):
            digest.update(f"{chr(10) if number else ''}{goal.instruction}".encode())
        return digest.hexdigest()

    @cached_property
    def identities(self) -> tuple[str, ...]:
        """What tells goals apart, by their numbers."""
        return tuple(goal.identity for goal in self.goals)

    @cached_property
    def product_splits(self) -> Mapping[str, tuple[int, ...]]:
        """Numbers of goals by agentc's own split: about 80, 10 and 10 percent of the products, by
        hash, so that no product is in two of them."""
        found: dict[str, list[int]] = {name: [] for name in OWN}
        for number, goal in enumerate(self.goals):
            share = hashlib.sha256(f"split/1/{goal.product.asin}".encode()).digest()[0]
            name = "train" if share < 205 else "dev" if share < 230 else "test"
            found[name].append(number)
        return {name: tuple(numbers) for name, numbers in found.items()}

    @cached_property
    def _index(self) -> SearchIndex:
        texts = map(searched_text, self.products)
        return SearchIndex(texts, [product.asin for product in self.products])

    def search(self, keywords: str) -> list[Product]:
        """At most 50 products, best first."""
        return [self.products[n] for n in self._index.search(keywords, MOST_RESULTS)]


def open_shop(options: ShopOptions, read_file: ReadFile) -> Shop:
    """Raises CatalogueError. Opened once for the same settings and contents."""
    contents: dict[str, bytes] = {}
    for path in (options.catalogue, options.attributes, options.instructions):
        if path is not None:
            content = read_file(path)
            if content is None:
                raise CatalogueError(f"there is no file {path} that can be read")
            contents[path] = content
    digests = tuple((path, hashlib.sha256(content).digest()) for path, content in contents.items())
    if (options, digests) not in _opened:
        shop = _build_shop(options, contents, dict(digests))
        # The two last ones are kept, without the files that they were made from.
        for oldest in list(_opened)[:-1]:
            del _opened[oldest]
        _opened[options, digests] = shop
    return _opened[options, digests]


_opened: dict[tuple[ShopOptions, tuple[tuple[str, bytes], ...]], Shop] = {}


def _build_shop(
    options: ShopOptions, contents: Mapping[str, bytes], digests: Mapping[str, bytes]
) -> Shop:
    def read(path: str | None) -> Any:
        return {} if path is None else read_json(contents[path], path)

    instructions = read(options.instructions)
    listed: Iterable[Any]
    if options.catalogue is None:
        size = 1000 if options.products is None else options.products
        listed, attributes = invent(size, options.invented_seed)
        digest = hashlib.sha256(f"invented {size} {options.invented_seed}".encode())
    else:
        listed = read_rows(contents[options.catalogue], options.catalogue)
        attributes = read(options.attributes)
        digest = hashlib.sha256(contents[options.catalogue])
    for path in (options.attributes, options.instructions):
        digest.update(b"/" if path is None else digests[path])
    products = read_products(listed, attributes, instructions, options.products)
    return Shop(products, options, digest.hexdigest())


def searched_text(product: Product) -> str:
    """What the search reads of a product."""
    options = ", and ".join(f"{name}: {', '.join(v)}" for name, v in product.options.items())
    first = product.bullets[0] if product.bullets else ""
    return " ".join((product.title, product.description, first, options)).lower()

"""Writes a catalogue with what a shop reads of it and nothing else: `agentc data fetch` runs this.

`python -m` of this, FETCHED and OUT: from `items_shuffle*.json` and `items_ins_v2*.json` (or .gz)
anywhere in FETCHED, `products.json.gz` and `attributes.json.gz` that give the same products, goals
and prices, whatever else the files hold and however they are written.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agentc_backends.environments.webshop.catalogue import (
    CatalogueError,
    Product,
    read_json,
    read_products,
    read_rows,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit 0 with the files written; 1 when there are none to read, or several, or a broken one."""
    parser = argparse.ArgumentParser(prog="webshop.job_canonical", description=__doc__)
    parser.add_argument("fetched", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args(arguments)
    try:
        catalogue = _only(options.fetched, "items_shuffle")
        listed = read_rows(catalogue.read_bytes(), catalogue.name)
        attributes = _only(options.fetched, "items_ins_v2")
        known = read_json(attributes.read_bytes(), attributes.name)
        products = read_products(listed, known, {}, None)
    except CatalogueError as error:
        print(error, file=sys.stderr)
        return 1
    options.out.mkdir(parents=True, exist_ok=True)
    _write(options.out / "products.json.gz", [canonical(product) for product in products])
    asins = {product.asin for product in products}
    kept = {asin: of for asin, of in known.items() if asin in asins}
    _write(options.out / "attributes.json.gz", dict(sorted(kept.items())))
    print(f"{len(products)} products")
    return 0


def canonical(product: Product) -> dict[str, Any]:
    """A row of the released schema that is read as the same product."""
    return {
        "asin": product.asin,
        "name": product.title,
        "full_description": product.description,
        "small_description": list(product.bullets),
        "category": product.category,
        "query": product.query,
        "product_category": " › ".join(product.levels),
        "pricing": product.price_tag if product.prices else "",
        "customization_options": {
            name: [{"value": value} for value in values] for name, values in product.options.items()
        },
    }


def _only(folder: Path, begins: str) -> Path:
    found = sorted(
        path for ending in (".json", ".json.gz") for path in folder.rglob(f"{begins}*{ending}")
    )
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise CatalogueError(f"expected one {begins}*.json, found {names}")
    return found[0]


def _write(path: Path, value: Sequence[Any] | Mapping[str, Any]) -> None:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    sys.exit(main())
